// SPDX-License-Identifier: Apache-2.0
// The index says which place of the batch it is, not which sample.
#include "meshwise/train/loader.hpp"

#include "vocabulary.hpp"

// expect: because::function_does_not_take_the_sample, try_<take_a_sample_and_an_Index_and_return_an_element>
#ifdef MESHWISE_MUST_NOT_COMPILE
auto user(const GlobalBatch& b, const Grid& mesh) {
  return b.read<On<Rows>>(mesh, {b.size(), 2}, [](const auto& index) { return index.linear; });
}
#else
auto user(const GlobalBatch& b, const Grid& mesh) {
  return b.read<On<Rows>>(mesh, {b.size(), 2}, [](std::uint64_t sample, const auto&) { return sample; });
}
#endif
