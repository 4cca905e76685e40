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
struct GatherRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, int root,
                       const CollectiveOptions& options) {
    const auto ranks = static_cast<std::size_t>(request.size());
    fill(request, EqualParts(ranks * in.size(), request.size()), in, out, root, options);
  }

  template <class T, class Blocks>
  static void fill(Request& request, const Blocks& blocks, std::span<const T> in, std::span<T> out, int root,
                   const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    require_root(verb, root, request.size(), rank);
    require_block(request, "an input as long as this rank's block", blocks, in.size());
    require_data(verb, "input", in.data(), in.size(), rank);
    request.describe<T, Choices...>(Operation::gather, blocks.total, options);
    use_blocks(request, blocks);
    request.call.shape.root = root;
    request.call.shape.in_place = blocks.total > 0;  // only the root is or is not: one plan serves both
    request.own = {in.data(), in.size(), nullptr, 0};
    if (rank == root) {
      require_whole(request, "an output of the root as long as all blocks", blocks, out.size());
      require_data(verb, "output", out.data(), out.size(), rank);
      if (blocks.total > 0 && out.data() + blocks.begin(rank) != in.data()) {
        require_apart(verb, in, out, "let the input be exactly the root's block of the output", rank);
      }
      request.own.output = out.data();
      request.own.output_count = out.size();
    }
    request.bind();
  }
};

}  // namespace detail

/// Puts the blocks of all ranks together at the root, in rank order.
///
/// Choices: an algorithm, or nothing. in: n elements of any trivially copyable type on every rank, n the same
/// everywhere. Blocks of other sizes: gather_v. out: p n elements at the root; other ranks may pass an empty span, and
/// what they pass is not touched. root: a rank of the group.
/// In place: at the root, `in` may be exactly its block of `out`.
/// Cost: the root receives (p - 1) n elements, the others nothing. Ranks may go on before the others have come only as
/// far as the algorithm needs them.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for a root outside of the group; otherwise as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void gather(Communicator& communicator, const In& in, Out&& out, int root = 0, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::GatherRule<Choices...>>("gather", communicator, in, out, root, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_gather(Communicator& communicator, In&& in, Out&& out, int root = 0, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::GatherRule<Choices...>>("start_gather", communicator, std::forward<In>(in),
                                                               std::forward<Out>(out), root, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_gather(Communicator& communicator, In&& in, Out&& out, int root = 0,
                    const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::GatherRule<Choices...>>("prepare_gather", communicator, std::forward<In>(in),
                                                                 std::forward<Out>(out), root, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_gather(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_gather(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
