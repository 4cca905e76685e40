// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/core/reduce.hpp"

namespace meshwise {

/// Combines the vectors of all ranks, element by element; rank r gets block r of the result.
///
/// in: N elements on every rank, N the same everywhere. out: block r of N, which begins at floor(r N / p); it may be
/// empty. In place: `out` is exactly `in.subspan(begin of block r, size of block r)`, on all ranks (an empty `out` too
/// must point there); then the rest of `in` stays as it was, as it does out of place.
/// Op: Sum, Product, Min or Max; 16-bit elements are combined in float.
/// Cost per rank: receives p - 1 times its block. Synchronises the ranks.
/// Ordering: as all_reduce, whose block r this is, bit for bit with the same algorithm.
/// Errors: as all_reduce; sizes that do not fit are named with the ones that do.
template <Reduction Op = Sum, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && Element<detail::item_t<Out>>
void reduce_scatter(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  using T = detail::item_t<Out>;
  const std::span<const T> input = detail::reading(in);
  const std::span<T> output = detail::writing(out);
  const Endpoint& endpoint = communicator.endpoint("reduce_scatter");
  const int rank = endpoint.rank();
  const std::size_t count = input.size();
  const Range part = detail::rank_part(count, endpoint.size(), rank);
  detail::require_count("reduce_scatter", "an output as long as this rank's block of the input", part.size,
                        output.size(), rank);
  detail::require_data("reduce_scatter", "input", input.data(), count, rank);
  detail::require_data("reduce_scatter", "output", output.data(), output.size(), rank);
  Call call =
      detail::span_call("reduce_scatter", Operation::reduce_scatter, input.data(), output.data(), count, options);
  // With fewer elements than ranks an empty block may lie at its in-place position by accident, on some ranks only.
  // Then nobody is in place: a block that really is coincides exactly with where it goes, which is harmless.
  const bool coincide = count > 0 && input.data() + part.begin == output.data();
  call.shape.in_place = coincide && count >= static_cast<std::size_t>(endpoint.size());
  if (!coincide) {
    detail::require_apart("reduce_scatter", input, output, "pass one span to leave the result in its block", rank);
  }
  call.reduction = reduction_kind<Op>;
  call.kernel = reduce_kernel<T, Op>();
  communicator.run(call);
}

/// The same in place. Returns this rank's block of `data`, which holds the result; the rest is unchanged.
template <Reduction Op = Sum, detail::Writable Data>
  requires Element<detail::item_t<Data>> std::span<detail::item_t<Data>> reduce_scatter(
      Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
    const auto all = detail::writing(data);
    const Endpoint& endpoint = communicator.endpoint("reduce_scatter");
    const Range part = detail::rank_part(all.size(), endpoint.size(), endpoint.rank());
    const auto own = all.subspan(part.begin, part.size);
    reduce_scatter<Op>(communicator, all, own, options);
    return own;
  }

}  // namespace meshwise
