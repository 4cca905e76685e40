// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct GatherVRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                       int root, const CollectiveOptions& options) {
    GatherRule<Choices...>::fill(request, keep_blocks(request, counts), in, out, root, options);
  }
};

}  // namespace detail

/// Puts blocks of any sizes together at the root, in rank order.
///
/// Choices: an algorithm, or nothing. counts: the elements of each rank's block, p numbers, the same on all ranks; they
/// are copied. in: counts[r] elements on rank r, of any trivially copyable type; an empty one may be null. out: the sum
/// of all counts at the root; other ranks may pass an empty span. root: a rank of the group.
/// In place: at the root, `in` may be exactly its block of `out`.
/// Cost: the root receives all blocks but its own. Ordering: as gather.
/// Errors: as gather; `mismatch` if counts differ between ranks.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void gather_v(Communicator& communicator, const In& in, Out&& out, std::span<const std::size_t> counts, int root = 0,
              const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::GatherVRule<Choices...>>("gather_v", communicator, in, out, counts, root,
                                                               options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_gather_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts, int root = 0,
                    const CollectiveOptions& options = {}) {
  return detail::start_between<detail::GatherVRule<Choices...>>("start_gather_v", communicator, std::forward<In>(in),
                                                                std::forward<Out>(out), counts, root, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_gather_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts, int root = 0,
                      const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::GatherVRule<Choices...>>(
      "prepare_gather_v", communicator, std::forward<In>(in), std::forward<Out>(out), counts, root, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto gather_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_gather_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_gather_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_gather_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
