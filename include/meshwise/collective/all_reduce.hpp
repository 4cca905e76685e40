// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "meshwise/collective/detail/verbs.hpp"
#include "meshwise/collective/refused.hpp"

namespace meshwise {

namespace detail {

template <class... Choices>
struct AllReduceRule {
  template <class T>
  static void describe(Request& request, std::span<const T> in, std::span<T> out, const CollectiveOptions& options) {
    const char* const verb = request.verb();
    const std::size_t count = out.size();
    require_count(verb, "an input as long as the output", count, in.size(), request.rank());
    require_data(verb, "input", in.data(), count, request.rank());
    require_data(verb, "output", out.data(), count, request.rank());
    request.describe<T, Choices...>(Operation::all_reduce, count, options);
    request.call.shape.in_place = count > 0 && in.data() == out.data();
    if (!request.call.shape.in_place) {
      require_apart(verb, in, out, "pass one span to reduce in place", request.rank());
    }
    request.combine<T, Choices...>(options.factor);
    request.own = {in.data(), count, out.data(), count};
    request.bind();
  }

  template <class T>
  static void within(Request& request, std::span<T> data, const CollectiveOptions& options) {
    describe(request, std::span<const T>(data), data, options);
  }
};

}  // namespace detail

/// Combines the vectors of all ranks, element by element; every rank gets the whole result.
///
/// Choices: how to combine (Sum unless said; any Combination) and an algorithm (any Generator, the caller's own too),
/// in any order: `all_reduce<Max>(...)`, `all_reduce<Ring>(...)`, `all_reduce<Ring, Average>(...)`.
/// in, out: N elements of one Element type on every rank, N the same everywhere, 0 allowed. The same memory, or apart.
/// options: see CollectiveOptions. With a wire element values are converted to it, combined as that type is, and
/// converted back: bf16 in f32 is the sum in fp32, rounded once, whatever the algorithm.
/// Cost per rank: 2(p - 1)/p N elements of traffic. Synchronises all ranks. No allocation once calls of this kind and
/// size have been made; a wire element or a factor takes staging memory as large as the buffers.
/// Ordering: all ranks get the same bits, those of NaN and the sign of zero too. With the direct algorithm, and with
/// options.reproducible, element i is ((x0 op x1) op x2) ... in rank order; with others in an order that depends on the
/// block that i is in. Blocks: part k of p begins at floor(k N / p). On return the spans are the caller's again. A
/// group of one does what the combination says of one contribution: a copy, times the factor, or a truth value.
/// Accuracy of sums: a move adds in fp32 (bf16, fp16, fp8) or in the element type (f32, f64), and rounds to the element
/// type when it stores its result. If a contribution goes through at most h such moves,
///     |result - exact| <= ((1 + u)^h (1 + v)^(p - 1) - 1) (|x0| + |x1| + ...), about (h u + (p - 1) v) times that sum,
/// where u is 2^-8 for bf16, 2^-11 for fp16, 2^-4 for f8e4m3, 2^-3 for f8e5m2, 0 for f32 and f64; v is 2^-24, 2^-53 for
/// f64. h is 1, so that the result is off by no more than half its last place and the fp32 sum's own error, wherever
/// one rank combines all contributions at once: between threads or processes that share memory, in the caller's buffers
/// or through the library's, unless an algorithm, lanes or a topology with levels is given; for direct, one_shot and
/// two_shot; with options.reproducible. Where partial results travel as the elements they are, each hop rounds:
/// h = p - 1 for ring; ceil(lg p) at most for recursive_doubling, halving_doubling, circulant and double_tree;
/// Verdict::roundings of any schedule. By messages the library takes what is fastest, h <= p - 1: say reproducible, or
/// let f32 travel, options.wire = ElementKind::f32, for which the bound has (1 + u) (1 + v)^(h + p - 1). A partial
/// result that is stored and exceeds all elements becomes infinite (f8e4m3: NaN). Average adds one rounding in the type
/// that adds or, where sums are stored before they are divided, in the element type.
/// Errors: `invalid_argument` for spans of different sizes, null or partly overlapping, and for options that do not fit
/// (before anything is sent, the communicator stays usable); `mismatch`, `timed_out`, `aborted`, `peer_left` (which
/// poison it).
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
void all_reduce(Communicator& communicator, const In& in, Out&& out, const CollectiveOptions& options = {}) {
  detail::run_between_buffers<detail::AllReduceRule<Choices...>>("all_reduce", communicator, in, out, options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
void all_reduce(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  detail::run_within<detail::AllReduceRule<Choices...>>("all_reduce", communicator, data, options);
}

/// Begins an all_reduce; `wait` gives the output. Buffers that are moved in are owned until then. See Pending.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto start_all_reduce(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::start_between<detail::AllReduceRule<Choices...>>(
      "start_all_reduce", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto start_all_reduce(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::start_within<detail::AllReduceRule<Choices...>>("start_all_reduce", communicator,
                                                                 std::forward<Data>(data), options);
}

/// An all_reduce to be run many times on the same buffers. See Prepared.
template <class... Choices, detail::Readable In, detail::Writable Out>
  requires detail::Matching<In, Out> && detail::Reducing<detail::item_t<Out>, Choices...>
auto prepare_all_reduce(Communicator& communicator, In&& in, Out&& out, const CollectiveOptions& options = {}) {
  return detail::prepare_between<detail::AllReduceRule<Choices...>>(
      "prepare_all_reduce", communicator, std::forward<In>(in), std::forward<Out>(out), options);
}

/// The same in place.
template <class... Choices, detail::Writable Data>
  requires detail::Reducing<detail::item_t<Data>, Choices...>
auto prepare_all_reduce(Communicator& communicator, Data&& data, const CollectiveOptions& options = {}) {
  return detail::prepare_within<detail::AllReduceRule<Choices...>>("prepare_all_reduce", communicator,
                                                                   std::forward<Data>(data), options);
}

/// What does not fit is refused with the reason.
template <class... Choices, class Data, class... More>
auto all_reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto start_all_reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <class... Choices, class Data, class... More>
auto prepare_all_reduce(Communicator&, Data&&, More&&...)
    -> detail::refusal_t<detail::reducing, Data, detail::types<More...>, Choices...>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto all_reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto start_all_reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;
template <Algorithm algorithm, class... Choices, class Data, class... More>
auto prepare_all_reduce(Communicator&, Data&&, More&&...) -> detail::refusal_of_value_t<algorithm, Data>;

}  // namespace meshwise
