// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct AllToAllVRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out,
                       std::span<const std::size_t> send_counts, std::span<const std::size_t> receive_counts,
                       const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    const int ranks = request.size();
    std::vector<std::size_t>& offsets = request.workspace().offsets;
    offsets.clear();
    offsets.reserve(2 * static_cast<std::size_t>(ranks) + 2);
    const std::size_t sent = append_offsets(offsets, send_counts, verb, "send count", ranks, rank);
    const std::size_t received = append_offsets(offsets, receive_counts, verb, "receive count", ranks, rank);
    const std::size_t* const begins = offsets.data();
    require_sum(verb, "an input as long as all send counts", "send count", begins, ranks, in.size(), rank);
    require_sum(verb, "an output as long as all receive counts", "receive count", begins + ranks + 1, ranks, out.size(),
                rank);
    require_data(verb, "input", in.data(), sent, rank);
    require_data(verb, "output", out.data(), received, rank);
    require_apart(verb, in, out, "use two buffers, it does not work in place", rank);
    // No rank knows how many elements there are in all; it must not be 0, which would move nothing.
    request.describe<T, Choices...>(Operation::all_to_all, 1, options);
    request.agree(name_signature("all_to_all_v"));
    request.call.regions = Regions{&own_region, offsets.data(), offsets.size() * sizeof(std::size_t)};
    request.own = {in.data(), sent, out.data(), received};
    request.bind();
  }
};

}  // namespace detail

/// Sends a block of any size to every rank: block s of rank r's input becomes block r of rank s's output.
///
/// Choices: an algorithm of one round (such as Direct), or nothing. send_counts: the elements that this rank sends to
/// each rank; receive_counts: those that it receives from each; p numbers each, which no other rank need know, but
/// send_counts[s] on rank r must be receive_counts[r] on rank s. They are copied. in, out: the blocks one behind the
/// other, in rank order; any trivially copyable type; empty ones may be null. Input and output must be apart.
/// Cost per rank: receives the blocks of the others. Synchronises the ranks that exchange something.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for counts that do not fit the spans; `mismatch` with both counts if two ranks
/// disagree; otherwise as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void all_to_all_v(Communicator& communicator, const In& in, Out&& out, std::span<const std::size_t> send_counts,
                  std::span<const std::size_t> receive_counts, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::AllToAllVRule<Choices...>>("all_to_all_v", communicator, in, out, send_counts,
                                                                 receive_counts, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_all_to_all_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> send_counts,
                        std::span<const std::size_t> receive_counts, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::AllToAllVRule<Choices...>>("start_all_to_all_v", communicator,
                                                                  std::forward<In>(in), std::forward<Out>(out),
                                                                  send_counts, receive_counts, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_all_to_all_v(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> send_counts,
                          std::span<const std::size_t> receive_counts, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::AllToAllVRule<Choices...>>("prepare_all_to_all_v", communicator,
                                                                    std::forward<In>(in), std::forward<Out>(out),
                                                                    send_counts, receive_counts, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto all_to_all_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_all_to_all_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_all_to_all_v(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto all_to_all_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_all_to_all_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_all_to_all_v(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
