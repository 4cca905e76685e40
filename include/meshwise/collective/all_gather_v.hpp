// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct AllGatherVRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                       const CollectiveOptions& options) {
    AllGatherRule<Choices...>::fill(request, keep_blocks(request, counts), in, out, false, options);
  }

  template <class T>
  static void within(Request& request, std::span<T> data, std::span<const std::size_t> counts,
                     const CollectiveOptions& options) {
    const Ragged blocks = keep_blocks(request, counts);
    require_whole(request, "data as long as all blocks", blocks, data.size());
    const std::span<const T> own = data.subspan(blocks.begin(request.rank()), blocks.size(request.rank()));
    AllGatherRule<Choices...>::fill(request, blocks, own, data, true, options);
  }
};

}  // namespace detail

/// Puts blocks of any sizes together in rank order; every rank gets the whole vector.
///
/// Choices: an algorithm, or nothing. counts: the elements of each rank's block, p numbers, the same on all ranks; they
/// are copied. in: counts[r] elements on rank r. out: the sum of all counts, the blocks one behind the other. Any
/// trivially copyable type. A block may be empty, then its span may be null.
/// In place: `in` is exactly its part of `out`, on all ranks. If any count is 0, only the form with one span is truly
/// in place; spans that coincide are then served by a copy of the input.
/// Cost per rank: receives all blocks but its own, p + 1 numbers of bookkeeping. Synchronises the ranks.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: as all_gather; `mismatch` if counts differ between ranks.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void all_gather_v(Communicator& communicator, const In& in, Out&& out, std::span<const std::size_t> counts,
                  const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::AllGatherVRule<Choices...>>("all_gather_v", communicator, in, out, counts,
                                                                  options);
}

/// The same in place: this rank's block of `data` is the input.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
void all_gather_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                  const CollectiveOptions& options = {}) {
  detail::run_within<detail::AllGatherVRule<Choices...>>("all_gather_v", communicator, data, counts, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_all_gather_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts,
                        const CollectiveOptions& options = {}) {
  return detail::start_between<detail::AllGatherVRule<Choices...>>(
      "start_all_gather_v", communicator, std::forward<In>(in), std::forward<Out>(out), counts, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto start_all_gather_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                        const CollectiveOptions& options = {}) {
  return detail::start_within<detail::AllGatherVRule<Choices...>>("start_all_gather_v", communicator,
                                                                  std::forward<Data>(data), counts, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_all_gather_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts,
                          const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::AllGatherVRule<Choices...>>(
      "prepare_all_gather_v", communicator, std::forward<In>(in), std::forward<Out>(out), counts, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto prepare_all_gather_v(Communicator& communicator, Data&& data, std::span<const std::size_t> counts,
                          const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::AllGatherVRule<Choices...>>("prepare_all_gather_v", communicator,
                                                                    std::forward<Data>(data), counts, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto all_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_choices_t<detail::copying, Data, Choices...>;
template <class... Choices, class Data, class... More>
auto start_all_gather_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_of_choices_t<detail::copying, Data, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_all_gather_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_of_choices_t<detail::copying, Data, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto all_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_all_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_all_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
