// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct ReduceScatterRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, const CollectiveOptions& options) {
    fill(request, EqualParts(in.size(), request.size()), in, out, false, options);
  }

  template <class T>
  static void within(Request& request, std::span<T> data, const CollectiveOptions& options) {
    const EqualParts blocks(data.size(), request.size());
    fill(request, blocks, std::span<const T>(data),
         data.subspan(blocks.begin(request.rank()), blocks.size(request.rank())), true, options);
  }

  /// agreed: that it is in place on all ranks.
  template <class T, class Blocks>
  static void fill(Request& request, const Blocks& blocks, std::span<const T> in, std::span<T> out, bool agreed,
                   const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    require_whole(request, "an input as long as all blocks", blocks, in.size());
    require_block(request, "an output as long as this rank's block of the input", blocks, out.size());
    require_data(verb, "input", in.data(), in.size(), rank);
    require_data(verb, "output", out.data(), out.size(), rank);
    request.describe<T, Choices...>(Operation::reduce_scatter, blocks.total, options);
    use_blocks(request, blocks);
    // Where some block is empty, a rank cannot tell from pointers whether all others are in place.
    const bool coincide = blocks.total > 0 && in.data() + blocks.begin(rank) == out.data();
    request.call.shape.in_place = coincide && (agreed || !blocks.empty_somewhere);
    if (coincide && !request.call.shape.in_place) request.copy_input();
    if (!coincide) require_apart(verb, in, out, "pass one span to leave the result in its block", rank);
    request.combine<T, Choices...>(options.factor);
    request.own = {in.data(), in.size(), out.data(), out.size()};
    request.bind();
  }
};

}  // namespace detail

/// Combines the vectors of all ranks, element by element; rank r gets block r of the result.
///
/// Choices: a combination (Sum unless said) and an algorithm, as for all_reduce. in: N elements on every rank, N the
/// same everywhere. out: block r of N, which begins at floor(r N / p); it may be empty. Blocks of other sizes:
/// reduce_scatter_v.
/// In place: `out` is exactly `in.subspan(begin of block r, size of block r)`, on all ranks; then the rest of `in`
/// stays as it was, as it does out of place. If N < p, so that some blocks are empty, only the form with one span is
/// truly in place; spans that coincide are then served by a copy of the input.
/// Cost per rank: receives p - 1 times its block. Synchronises the ranks. A wire element or a factor takes staging
/// memory as large as the buffers.
/// Ordering, accuracy: as all_reduce, whose block r this is, bit for bit with the same algorithm. For pairwise h is
/// p - 1.
/// Errors: as all_reduce; sizes that do not fit are named with the ones that do.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
void reduce_scatter(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::ReduceScatterRule<Choices...>>("reduce_scatter", communicator, in, out, options);
}

/// The same in place. Returns this rank's block of `data`, which holds the result; the rest is unchanged.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto reduce_scatter(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::run_within<detail::ReduceScatterRule<Choices...>>("reduce_scatter", communicator, data, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto start_reduce_scatter(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::ReduceScatterRule<Choices...>>(
      "start_reduce_scatter", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto start_reduce_scatter(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::ReduceScatterRule<Choices...>>("start_reduce_scatter", communicator,
                                                                     std::forward<Data>(data), options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto prepare_reduce_scatter(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::ReduceScatterRule<Choices...>>(
      "prepare_reduce_scatter", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto prepare_reduce_scatter(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::ReduceScatterRule<Choices...>>("prepare_reduce_scatter", communicator,
                                                                       std::forward<Data>(data), options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto reduce_scatter(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_reduce_scatter(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_reduce_scatter(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto reduce_scatter(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_reduce_scatter(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_reduce_scatter(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
