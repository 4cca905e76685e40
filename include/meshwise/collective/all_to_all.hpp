// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"

namespace meshwise {

/// Transposes blocks: block s of rank r's input becomes block r of rank s's output.
///
/// in, out: p equal blocks of n elements on every rank, p n the same everywhere; any trivially copyable type. Input and
/// output must be apart: there is no in-place form.
/// Cost per rank: receives (p - 1) n elements. Synchronises the ranks.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for a size that p does not divide; otherwise as all_reduce.
template <detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out>
void all_to_all(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  using T = detail::item_t<Out>;
  const std::span<const T> input = detail::reading(in);
  const std::span<T> output = detail::writing(out);
  const Endpoint& endpoint = communicator.endpoint("all_to_all");
  const int rank = endpoint.rank();
  const std::size_t count = output.size();
  detail::require_count("all_to_all", "an input as long as the output", count, input.size(), rank);
  if (count % static_cast<std::size_t>(endpoint.size()) != 0) {
    fail("all_to_all", "a number of elements that " + std::to_string(endpoint.size()) + " ranks divide",
         std::to_string(count), "pad the blocks to equal size", rank);
  }
  detail::require_data("all_to_all", "input", input.data(), count, rank);
  detail::require_data("all_to_all", "output", output.data(), count, rank);
  detail::require_apart("all_to_all", input, output, "use two buffers, it does not work in place", rank);
  Call call = detail::span_call("all_to_all", Operation::all_to_all, input.data(), output.data(), count, options);
  communicator.run(call);
}

}  // namespace meshwise
