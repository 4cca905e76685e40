// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct AllToAllRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    const std::size_t count = out.size();
    require_count(verb, "an input as long as the output", count, in.size(), rank);
    if (count % static_cast<std::size_t>(request.size()) != 0) {
      fail(verb, "a number of elements that " + std::to_string(request.size()) + " ranks divide", std::to_string(count),
           "pad the blocks to equal size, or use all_to_all_v", rank);
    }
    require_data(verb, "input", in.data(), count, rank);
    require_data(verb, "output", out.data(), count, rank);
    require_apart(verb, in, out, "use two buffers, it does not work in place", rank);
    request.describe<T, Choices...>(Operation::all_to_all, count, options);
    request.own = {in.data(), count, out.data(), count};
    request.bind();
  }
};

}  // namespace detail

/// Transposes blocks: block s of rank r's input becomes block r of rank s's output.
///
/// Choices: an algorithm, or nothing. in, out: p equal blocks of n elements on every rank, p n the same everywhere; any
/// trivially copyable type. Blocks of other sizes: all_to_all_v. Input and output must be apart: there is no in-place
/// form.
/// Cost per rank: receives (p - 1) n elements. Synchronises the ranks.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for a size that p does not divide; otherwise as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void all_to_all(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::AllToAllRule<Choices...>>("all_to_all", communicator, in, out, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_all_to_all(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::AllToAllRule<Choices...>>("start_all_to_all", communicator, std::forward<In>(in),
                                                                 std::forward<Out>(out), options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_all_to_all(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::AllToAllRule<Choices...>>(
      "prepare_all_to_all", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto all_to_all(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_all_to_all(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_all_to_all(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto all_to_all(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_all_to_all(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_all_to_all(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
