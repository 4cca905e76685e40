// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/collective/detail/ragged.hpp"
#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"
#include "meshwise/schedule/redistribution.hpp"

namespace meshwise {

namespace detail {

/// Two splits of one vector, and what an exchange between them needs: its routes, and where things begin.
struct Splits {
  std::vector<std::size_t> counts_before;
  std::vector<std::size_t> counts_after;
  Redistribution between;
  std::vector<std::size_t> blocks;  ///< where each block begins in the vector, and where the last one ends
  std::vector<std::size_t> before;  ///< where the rank's part begins in the vector
  std::vector<std::size_t> after;

  Splits(std::span<const std::size_t> from, std::span<const std::size_t> to)
      : counts_before(from.begin(), from.end()),
        counts_after(to.begin(), to.end()),
        between(routes_between(counts_before, counts_after)),
        blocks(begins(between.sizes)),
        before(begins(counts_before)),
        after(begins(counts_after)) {}

  bool are(std::span<const std::size_t> from, std::span<const std::size_t> to) const {
    return same(from, counts_before) && same(to, counts_after);
  }

  /// The regions of an exchange. context: Splits.
  static Region locate(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
    const Splits& splits = *static_cast<const Splits*>(context);
    const auto owner = static_cast<std::size_t>(rank);
    const bool input = buffer == Buffer::input;
    const std::vector<int>& slots = input ? shape.routes->held[owner] : shape.routes->wanted[owner];
    const auto block = static_cast<std::size_t>(slots[static_cast<std::size_t>(slot)]);
    const std::size_t size = splits.blocks[block + 1] - splits.blocks[block];
    return Region{splits.blocks[block] - (input ? splits.before : splits.after)[owner], size, size, 1};
  }

 private:
  static bool same(std::span<const std::size_t> counts, const std::vector<std::size_t>& kept) {
    if (counts.size() != kept.size()) return false;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (counts[i] != kept[i]) return false;
    }
    return true;
  }

  static std::vector<std::size_t> begins(const std::vector<std::size_t>& sizes) {
    std::vector<std::size_t> result{0};
    result.reserve(sizes.size() + 1);
    for (const std::size_t size : sizes) result.push_back(result.back() + size);
    return result;
  }
};

template <class... Choices>
struct RedistributeRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out,
                       std::span<const std::size_t> counts_before, std::span<const std::size_t> counts_after,
                       const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    const auto own = static_cast<std::size_t>(rank);
    for (const auto& counts : {counts_before, counts_after}) {
      if (counts.size() == static_cast<std::size_t>(request.size())) continue;
      refuse_number_of_counts(verb, "count", request.size(), counts.size(), rank);
    }
    require_count(verb, "an input as long as this rank's part before", counts_before[own], in.size(), rank);
    require_count(verb, "an output as long as this rank's part after", counts_after[own], out.size(), rank);
    require_data(verb, "input", in.data(), in.size(), rank);
    require_data(verb, "output", out.data(), out.size(), rank);
    require_apart(verb, in, out, "use two buffers, it does not work in place", rank);
    OwnedAny& kept = request.workspace().splits;
    if (kept.get<Splits>() == nullptr || !kept.get<Splits>()->are(counts_before, counts_after)) {
      kept.own(new Splits(counts_before, counts_after));
    }
    const Splits* const splits = kept.get<Splits>();
    request.describe<T, Choices...>(Operation::exchange, splits->before.back(), options);
    request.call.shape.routes = &splits->between.routes;
    request.call.regions = Regions{&Splits::locate, splits, 0};
    for (const auto& counts : {counts_before, counts_after}) {
      for (const std::size_t count : counts) request.agree(count);
    }
    request.call.begins = splits->before.data();
    request.call.begins_after = splits->after.data();
    request.own = {in.data(), in.size(), out.data(), out.size()};
    request.bind();
  }
};

}  // namespace detail

/// Brings a vector from one split over the ranks to another.
///
/// Choices: an algorithm, or nothing. counts_before: the elements that each rank has, in rank order; counts_after:
/// those that each rank gets; p numbers each with the same sum, the same on all ranks, 0 allowed. in, out: this rank's
/// part before and after, of any trivially copyable type; empty ones may be null. Input and output must be apart.
/// Cost per rank: receives what it lacks; at most one message from each rank that has some of it. Making the routes
/// takes time and memory in proportion to p; the last pair of splits is remembered, prepare_redistribute keeps its own.
/// Ordering and lifetime: on return the spans are the caller's again. A group of one copies.
/// Errors: `invalid_argument` for counts that do not fit each other or the spans; `mismatch` if they differ between
/// ranks; otherwise as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
void redistribute(Communicator& communicator, const In& in, Out&& out, std::span<const std::size_t> counts_before,
                  std::span<const std::size_t> counts_after, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::RedistributeRule<Choices...>>("redistribute", communicator, in, out,
                                                                    counts_before, counts_after, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto start_redistribute(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts_before,
                        std::span<const std::size_t> counts_after, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::RedistributeRule<Choices...>>("start_redistribute", communicator,
                                                                     std::forward<In>(in), std::forward<Out>(out),
                                                                     counts_before, counts_after, options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Copying<Choices...>
auto prepare_redistribute(Communicator& communicator, In&& in, Out&& out, std::span<const std::size_t> counts_before,
                          std::span<const std::size_t> counts_after, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::RedistributeRule<Choices...>>("prepare_redistribute", communicator,
                                                                       std::forward<In>(in), std::forward<Out>(out),
                                                                       counts_before, counts_after, options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto redistribute(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_redistribute(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_redistribute(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::copying, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto redistribute(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_redistribute(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_redistribute(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
