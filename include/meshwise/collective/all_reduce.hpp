// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/core/reduce.hpp"

namespace meshwise {

/// Combines the vectors of all ranks, element by element; every rank gets the whole result.
///
/// in, out: N elements of one Element type on every rank, N the same everywhere, 0 allowed. The same memory, or apart.
/// Op: Sum, Product, Min or Max; 16-bit elements are combined in float.
/// Cost per rank: 2(p - 1)/p N elements of traffic. Synchronises all ranks.
/// Ordering: all ranks get the same bits. With the direct algorithm element i is ((x0 op x1) op x2) ... in rank order,
/// with the ring in an order that depends on the block that i is in. Blocks: part k of p begins at floor(k N / p).
/// On return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for spans of different sizes, null or partly overlapping (before anything is sent, the
/// communicator stays usable); `mismatch`, `timed_out`, `aborted`, `peer_left` (which poison it).
template <Reduction Op = Sum, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && Element<detail::item_t<Out>>
void all_reduce(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  using T = detail::item_t<Out>;
  const std::span<const T> input = detail::reading(in);
  const std::span<T> output = detail::writing(out);
  const int rank = communicator.endpoint("all_reduce").rank();
  const std::size_t count = output.size();
  detail::require_count("all_reduce", "an input as long as the output", count, input.size(), rank);
  detail::require_data("all_reduce", "input", input.data(), count, rank);
  detail::require_data("all_reduce", "output", output.data(), count, rank);
  Call call = detail::span_call("all_reduce", Operation::all_reduce, input.data(), output.data(), count, options);
  call.shape.in_place = count > 0 && input.data() == output.data();
  if (!call.shape.in_place) {
    detail::require_apart("all_reduce", input, output, "pass one span to reduce in place", rank);
  }
  call.reduction = reduction_kind<Op>;
  call.kernel = reduce_kernel<T, Op>();
  communicator.run(call);
}

/// The same in place.
template <Reduction Op = Sum, detail::Writable Data>
  requires Element<detail::item_t<Data>>
void all_reduce(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  all_reduce<Op>(communicator, data, data, options);
}

}  // namespace meshwise
