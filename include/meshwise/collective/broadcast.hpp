// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct BroadcastRule {
  template <class T>
  static void within(Request& request, std::span<T> data, int root, const CollectiveOptions& options) {
    require_root(request.verb(), root, request.size(), request.rank());
    require_data(request.verb(), "data", data.data(), data.size(), request.rank());
    request.describe<T, Choices...>(Operation::broadcast, data.size(), options);
    request.call.shape.root = root;
    request.call.shape.in_place = true;
    request.own = {data.data(), request.rank() == root ? data.size() : 0, data.data(), data.size()};
    request.bind();
  }
};

}  // namespace detail

/// Copies the root's vector to all ranks.
///
/// Choices: an algorithm, or nothing. data: N elements of any trivially copyable type on every rank, N the same
/// everywhere; the root's are sent and stay as they are. With a wire element the root's too are rounded to it, so that
/// all ranks hold the same bits. root: a rank of the group.
/// Cost per rank: receives N elements, the root none. All ranks share the work, so that no rank may go on before
/// the others have come; but the root of a small vector does not wait.
/// Ordering and lifetime: on return the span is the caller's again.
/// Errors: `invalid_argument` for a root outside of the group or a null span; otherwise as all_reduce. If ranks differ
/// so that nobody hears from the others, such as in who the root is, the next call in which they do reports it, at the
/// latest the end of the communicator, through `launch`.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
void broadcast(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  detail::run_within<detail::BroadcastRule<Choices...>>("broadcast", communicator, data, root, options);
}

/// Begins a broadcast; `wait` gives the data. See Pending.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto start_broadcast(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::BroadcastRule<Choices...>>("start_broadcast", communicator,
                                                                 std::forward<Data>(data), root, options);
}

/// A broadcast to be run many times on the same buffer. See Prepared.
template <class... Choices, detail::Writable Data>
  requires detail::Copying<Choices...>
auto prepare_broadcast(Communicator& communicator, Data&& data, int root = 0, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::BroadcastRule<Choices...>>("prepare_broadcast", communicator,
                                                                   std::forward<Data>(data), root, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto broadcast(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_broadcast(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_broadcast(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto broadcast(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_broadcast(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_broadcast(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
