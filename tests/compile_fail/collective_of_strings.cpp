// SPDX-License-Identifier: Apache-2.0
// An object that owns memory is more than its bytes.
#include <string>
#include <vector>

#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/broadcast_bytes.hpp"

using namespace meshwise;

// expect: because::this_is_no_span_of_trivially_copyable_elements<std::.*vector<std::.*string.*, try_<pass_a_vector_an_array_or_a_span>
#ifdef MESHWISE_MUST_NOT_COMPILE
void user(Communicator& c, std::vector<std::string>& data) { broadcast(c, data); }
#else
void user(Communicator& c, std::vector<std::string>& data) {
  for (std::string& one : data) broadcast_bytes(c, one);  // as many on all ranks
}
#endif
