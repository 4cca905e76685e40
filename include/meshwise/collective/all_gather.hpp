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
struct AllGatherRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, const CollectiveOptions& options) {
    fill(request, EqualParts(out.size(), request.size()), in, out, false, options);
  }

  template <class T>
  static void within(Request& request, std::span<T> data, const CollectiveOptions& options) {
    const EqualParts blocks(data.size(), request.size());
    fill<T>(request, blocks, data.subspan(blocks.begin(request.rank()), blocks.size(request.rank())), data, true,
            options);
  }

  /// agreed: that it is in place on all ranks.
  template <class T, class Blocks>
  static void fill(Request& request, const Blocks& blocks, std::span<const T> in, std::span<T> out, bool agreed,
                   const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    require_whole(request, "an output as long as all blocks", blocks, out.size());
    require_block(request, "an input as long as this rank's block of the output", blocks, in.size());
    require_data(verb, "input", in.data(), in.size(), rank);
    require_data(verb, "output", out.data(), out.size(), rank);
    request.describe<T, Choices...>(Operation::all_gather, blocks.total, options);
    use_blocks(request, blocks);
    // Where some block is empty, a rank cannot tell from pointers whether all others are in place.
    const bool coincide = blocks.total > 0 && out.data() + blocks.begin(rank) == in.data();
    request.call.shape.in_place = coincide && (agreed || !blocks.empty_somewhere);
    if (coincide && !request.call.shape.in_place) request.copy_input();
    if (!coincide) require_apart(verb, in, out, "pass one span whose block of this rank is the input", rank);
    request.own = {in.data(), in.size(), out.data(), out.size()};
    request.bind();
  }
};

}  // namespace detail

/// Puts the blocks of all ranks together in rank order; every rank gets the whole vector.
///
/// Choices: an algorithm, or nothing. out: N elements on every rank, N the same everywhere. in: block r of N, which
/// begins at floor(r N / p), so that equal blocks are those of N = p n; it may be empty. Blocks of other sizes:
/// all_gather_v. Elements are of any trivially copyable type.
/// In place: `in` is exactly that part of `out`, on all ranks. If N < p, so that some blocks are empty, only the form
/// with one span is truly in place; spans that coincide are then served by a copy of the input.
/// Cost per rank: receives N minus its own block. Synchronises the ranks. With a wire element the own block is rounded
/// to it too, so that all ranks hold the same bits; it takes staging memory.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: as all_reduce; sizes that do not fit are named with the ones that do.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void all_gather(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::AllGatherRule<Choices...>>("all_gather", communicator, in, out, options);
}

/// The same in place: this rank's block of `data` is the input.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
void all_gather(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  detail::run_within<detail::AllGatherRule<Choices...>>("all_gather", communicator, data, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_all_gather(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::AllGatherRule<Choices...>>(
      "start_all_gather", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto start_all_gather(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::AllGatherRule<Choices...>>("start_all_gather", communicator,
                                                                 std::forward<Data>(data), options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_all_gather(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::AllGatherRule<Choices...>>(
      "prepare_all_gather", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto prepare_all_gather(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::AllGatherRule<Choices...>>("prepare_all_gather", communicator,
                                                                   std::forward<Data>(data), options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto all_gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_all_gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_all_gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto all_gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_all_gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_all_gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
