// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct ReduceRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, int root,
                       const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    const std::size_t count = in.size();
    require_root(verb, root, request.size(), rank);
    require_data(verb, "input", in.data(), count, rank);
    request.describe<T, Choices...>(Operation::reduce, count, options);
    request.call.shape.root = root;
    request.call.shape.in_place = count > 0;  // only the root is or is not: one plan serves both
    request.own = {in.data(), count, nullptr, 0};
    if (rank == root) {
      require_count(verb, "an output of the root as long as the input", count, out.size(), rank);
      require_data(verb, "output", out.data(), count, rank);
      if (in.data() != out.data()) require_apart(verb, in, out, "pass one span to reduce in place", rank);
      request.own.output = out.data();
      request.own.output_count = count;
    }
    request.combine<T, Choices...>(options.factor);
    request.bind();
  }

  template <class T>
  static void within(Request& request, std::span<T> data, int root, const CollectiveOptions& options) {
    describe(request, std::span<const T>(data), data, root, options);
  }
};

}  // namespace detail

/// Combines the vectors of all ranks, element by element; the root gets the result.
///
/// Choices: a combination (Sum unless said) and an algorithm, as for all_reduce. in: N elements on every rank, N the
/// same everywhere; only read, except by the root in place. out: N elements at the root; other ranks may pass an empty
/// span, and what they pass is not touched. root: a rank of the group.
/// In place: at the root, `in` and `out` may be the same.
/// Cost: (p - 1) N elements are received, all ranks together; volume counts them at the root.
/// Ordering: element i is combined in rank order by the direct algorithm and with options.reproducible. On return the
/// spans are the caller's again.
/// Accuracy: as all_reduce, with h = ceil(lg p) for binomial and scatter_all_gather, less for knomial, one more for
/// double_tree.
/// Errors: `invalid_argument` for a root outside of the group; otherwise as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
void reduce(Communicator& communicator, const In& in, Out&& out, int root = 0, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::ReduceRule<Choices...>>("reduce", communicator, in, out, root, options);
}

/// The same in place: the root's data becomes the result, the others' is only read.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
void reduce(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  detail::run_within<detail::ReduceRule<Choices...>>("reduce", communicator, data, root, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto start_reduce(Communicator& communicator, In&& in, Out&& out, int root = 0, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::ReduceRule<Choices...>>("start_reduce", communicator, std::forward<In>(in),
                                                               std::forward<Out>(out), root, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto start_reduce(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::ReduceRule<Choices...>>("start_reduce", communicator, std::forward<Data>(data),
                                                              root, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto prepare_reduce(Communicator& communicator, In&& in, Out&& out, int root = 0,
                    const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::ReduceRule<Choices...>>("prepare_reduce", communicator, std::forward<In>(in),
                                                                 std::forward<Out>(out), root, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto prepare_reduce(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::ReduceRule<Choices...>>("prepare_reduce", communicator,
                                                                std::forward<Data>(data), root, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
