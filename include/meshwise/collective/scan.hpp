// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <Operation operation, class... Choices>
struct ScanRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const int rank = request.rank();
    const std::size_t count = out.size();
    require_count(verb, "an input as long as the output", count, in.size(), rank);
    require_data(verb, "input", in.data(), count, rank);
    require_data(verb, "output", out.data(), count, rank);
    request.describe<T, Choices...>(operation, count, options);
    request.call.shape.in_place = count > 0 && in.data() == out.data();
    if (!request.call.shape.in_place) require_apart(verb, in, out, "pass one span to scan in place", rank);
    request.combine<T, Choices...>(options.factor);
    request.own = {in.data(), count, out.data(), count};
    if constexpr (operation == Operation::exclusive_scan) {
      request.set_contributors(rank);
      if (rank == 0) request.fill_with_identity<T, reduction_of<combination_in<Choices...>>>();
    } else {
      request.set_contributors(rank + 1);
    }
    request.bind();
  }

  template <class T>
  static void within(Request& request, std::span<T> data, const CollectiveOptions& options) {
    describe(request, std::span<const T>(data), data, options);
  }
};
template <class... Choices>
using InclusiveScanRule = ScanRule<Operation::inclusive_scan, Choices...>;
template <class... Choices>
using ExclusiveScanRule = ScanRule<Operation::exclusive_scan, Choices...>;

}  // namespace detail

/// Combines the vectors of ranks 0 to r, element by element; rank r gets that result.
///
/// Choices: a combination (Sum unless said; not Average) and an algorithm, as for all_reduce. in, out: N elements on
/// every rank, N the same everywhere. The same memory, or apart.
/// Cost: N elements received on every rank but rank 0, all ranks together (p - 1) N at least; algorithms with fewer
/// rounds move more. Ranks wait for those below them.
/// Ordering: contributions are combined in rank order, so that a reduction need not be commutative; associated as the
/// algorithm does. On return the spans are the caller's again. Rank 0 gets what the combination says of one
/// contribution.
/// Accuracy: as all_reduce for the r + 1 contributions of rank r. The prefix of a rank is what the next one goes on
/// from, rounded: h = r, with options.reproducible too; ceil(lg (r + 1)) for recursive_doubling, 1 for one_shot.
/// Errors: as all_reduce.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
void inclusive_scan(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::InclusiveScanRule<Choices...>>("inclusive_scan", communicator, in, out, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
void inclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  detail::run_within<detail::InclusiveScanRule<Choices...>>("inclusive_scan", communicator, data, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
auto start_inclusive_scan(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::InclusiveScanRule<Choices...>>(
      "start_inclusive_scan", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
auto start_inclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::InclusiveScanRule<Choices...>>("start_inclusive_scan", communicator,
                                                                     std::forward<Data>(data), options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
auto prepare_inclusive_scan(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::InclusiveScanRule<Choices...>>(
      "prepare_inclusive_scan", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
auto prepare_inclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::InclusiveScanRule<Choices...>>("prepare_inclusive_scan", communicator,
                                                                       std::forward<Data>(data), options);
}

/// Combines the vectors of ranks 0 to r - 1, element by element; rank r gets that result, rank 0 the neutral value.
///
/// Everything else as inclusive_scan. The neutral value is `identity` of the reduction: 0 for sums, the largest value
/// for Min.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
void exclusive_scan(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::ExclusiveScanRule<Choices...>>("exclusive_scan", communicator, in, out, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
void exclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  detail::run_within<detail::ExclusiveScanRule<Choices...>>("exclusive_scan", communicator, data, options);
}

/// Begins it; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
auto start_exclusive_scan(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::ExclusiveScanRule<Choices...>>(
      "start_exclusive_scan", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
auto start_exclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::ExclusiveScanRule<Choices...>>("start_exclusive_scan", communicator,
                                                                     std::forward<Data>(data), options);
}

/// To be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Scanning<detail::item_t<Out>, Choices...>
auto prepare_exclusive_scan(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::ExclusiveScanRule<Choices...>>(
      "prepare_exclusive_scan", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Scanning<detail::item_t<Data>, Choices...>
auto prepare_exclusive_scan(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::ExclusiveScanRule<Choices...>>("prepare_exclusive_scan", communicator,
                                                                       std::forward<Data>(data), options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto inclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_inclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_inclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto inclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_inclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_inclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto exclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_exclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_exclusive_scan(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::scanning, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto exclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_exclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_exclusive_scan(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
