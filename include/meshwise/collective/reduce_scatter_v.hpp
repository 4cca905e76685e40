// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct ReduceScatterVRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                       const CollectiveOptions& options) {
    ReduceScatterRule<Choices...>::fill(request, keep_blocks(request, counts), in, out, false, options);
  }

  template <class T>
  static void within(Request& request, std::span<T> data, std::span<const std::size_t> counts,
                     const CollectiveOptions& options) {
    const Ragged blocks = keep_blocks(request, counts);
    require_whole(request, "data as long as all blocks", blocks, data.size());
    const std::span<T> own = data.subspan(blocks.begin(request.rank()), blocks.size(request.rank()));
    ReduceScatterRule<Choices...>::fill(request, blocks, std::span<const T>(data), own, true, options);
  }
};

}  // namespace detail

/// Combines the vectors of all ranks, element by element; rank r gets the r-th of the blocks that `counts` cuts.
///
/// Choices: a combination (Sum unless said) and an algorithm, as for all_reduce. counts: the elements of each rank's
/// block, p numbers, the same on all ranks; they are copied. in: the sum of all counts. out: counts[r] elements on rank
/// r; an empty one may be null.
/// In place: `out` is exactly its part of `in`, on all ranks; the rest of `in` stays as it was. If any count is 0, only
/// the form with one span is truly in place; spans that coincide are then served by a copy of the input.
/// Cost per rank: receives p - 1 times its block. Synchronises the ranks.
/// Ordering: as reduce_scatter. Errors: as reduce_scatter; `mismatch` if counts differ between ranks.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
void reduce_scatter_v(Communicator& communicator, const In& in, Out&& out, std::span<const std::size_t> counts,
                      const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::ReduceScatterVRule<Choices...>>("reduce_scatter_v", communicator, in, out, counts,
                                                                      options);
}

/// The same in place. Returns this rank's block of `data`, which holds the result; the rest is unchanged.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto reduce_scatter_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                      const CollectiveOptions& options = {}) {
  return detail::run_within<detail::ReduceScatterVRule<Choices...>>("reduce_scatter_v", communicator, data, counts,
                                                                    options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto start_reduce_scatter_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts,
                            const CollectiveOptions& options = {}) {
  return detail::start_between<detail::ReduceScatterVRule<Choices...>>(
      "start_reduce_scatter_v", communicator, std::forward<In>(in), std::forward<Out>(out), counts, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto start_reduce_scatter_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                            const CollectiveOptions& options = {}) {
  return detail::start_within<detail::ReduceScatterVRule<Choices...>>("start_reduce_scatter_v", communicator,
                                                                      std::forward<Data>(data), counts, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto prepare_reduce_scatter_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts,
                              const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::ReduceScatterVRule<Choices...>>(
      "prepare_reduce_scatter_v", communicator, std::forward<In>(in), std::forward<Out>(out), counts, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto prepare_reduce_scatter_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                              const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::ReduceScatterVRule<Choices...>>("prepare_reduce_scatter_v", communicator,
                                                                        std::forward<Data>(data), counts, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto reduce_scatter_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_of_choices_t<detail::reducing, Data, Choices...>;
template <class... Choices, class Data, class... More>
auto start_reduce_scatter_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_of_choices_t<detail::reducing, Data, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_reduce_scatter_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_of_choices_t<detail::reducing, Data, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto reduce_scatter_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_reduce_scatter_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_reduce_scatter_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
