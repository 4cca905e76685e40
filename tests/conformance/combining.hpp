// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "ask.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/schedule/circulant.hpp"
#include "meshwise/schedule/halving_doubling.hpp"
#include "meshwise/schedule/knomial.hpp"
#include "meshwise/schedule/recursive_doubling.hpp"
#include "perform.hpp"

/// The operations that combine, for a type and a combination.
namespace conformance {

/// a + b + 2ab for whole numbers, the value of greater magnitude for floats.
struct Commuting {
  static constexpr const char* name = "conformance_commuting";
  static constexpr meshwise::ReductionKind kind = meshwise::ReductionKind::user;
  static constexpr bool commutative = true;
  static constexpr bool linear = false;
  template <meshwise::Element T>
  static constexpr meshwise::accumulate_t<T> identity() {
    return meshwise::accumulate_t<T>{0};
  }
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      const auto x = static_cast<std::uint64_t>(a);
      const auto y = static_cast<std::uint64_t>(b);
      return static_cast<A>(x + y + 2 * x * y);
    } else {
      if (std::fabs(a) == std::fabs(b)) return std::signbit(a) ? b : a;
      return std::fabs(a) > std::fabs(b) ? a : b;
    }
  }
};

/// Whole numbers are affine maps modulo half their bits, slope above offset, and are composed, the first one innermost;
/// of floats the last one that is not zero.
struct Ordered {
  static constexpr const char* name = "conformance_ordered";
  static constexpr meshwise::ReductionKind kind = meshwise::ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <meshwise::Element T>
  static constexpr meshwise::accumulate_t<T> identity() {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(std::uint64_t{1} << (4 * sizeof(T)));
    return meshwise::accumulate_t<T>{0};
  }
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      constexpr unsigned half = 4 * sizeof(A);
      const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
      const auto x = static_cast<std::uint64_t>(a);
      const auto y = static_cast<std::uint64_t>(b);
      const std::uint64_t slope = (y >> half & mask) * (x >> half & mask) & mask;
      const std::uint64_t offset = ((y >> half & mask) * (x & mask) + (y & mask)) & mask;
      return static_cast<A>(slope << half | offset);
    } else {
      return b != A{0} ? b : a;
    }
  }
};

template <class T, bool every, class... Choices>
void combine_one_span(Ask& ask) {
  using namespace meshwise;
  const Spans<T> s(ask);
  const auto& options = ask.options;
  const int root = ask.c->root_rank();
  Communicator& c = *ask.communicator;
  switch (ask.c->verb()) {
    case Verb::all_reduce:
      return in_manner<every>(
          ask, [&](auto&) { all_reduce<Choices...>(c, s.whole, options); },
          [&](auto&) { return start_all_reduce<Choices...>(c, s.whole, options); },
          [&](auto&) { return prepare_all_reduce<Choices...>(c, s.whole, options); });
    case Verb::reduce_scatter:
      return in_manner<every>(
          ask, [&](auto&) { reduce_scatter<Choices...>(c, s.whole, options); },
          [&](auto&) { return start_reduce_scatter<Choices...>(c, s.whole, options); },
          [&](auto&) { return prepare_reduce_scatter<Choices...>(c, s.whole, options); });
    case Verb::reduce_scatter_v:
      return in_manner<every>(
          ask, [&](auto&) { reduce_scatter_v<Choices...>(c, s.whole, ask.counts, options); },
          [&](auto&) { return start_reduce_scatter_v<Choices...>(c, s.whole, ask.counts, options); },
          [&](auto&) { return prepare_reduce_scatter_v<Choices...>(c, s.whole, ask.counts, options); });
    case Verb::reduce:
      return in_manner<every>(
          ask, [&](auto&) { reduce<Choices...>(c, s.whole, root, options); },
          [&](auto&) { return start_reduce<Choices...>(c, s.whole, root, options); },
          [&](auto&) { return prepare_reduce<Choices...>(c, s.whole, root, options); });
    case Verb::inclusive_scan:
      return in_manner<every>(
          ask, [&](auto&) { inclusive_scan<Choices...>(c, s.whole, options); },
          [&](auto&) { return start_inclusive_scan<Choices...>(c, s.whole, options); },
          [&](auto&) { return prepare_inclusive_scan<Choices...>(c, s.whole, options); });
    case Verb::exclusive_scan:
      return in_manner<every>(
          ask, [&](auto&) { exclusive_scan<Choices...>(c, s.whole, options); },
          [&](auto&) { return start_exclusive_scan<Choices...>(c, s.whole, options); },
          [&](auto&) { return prepare_exclusive_scan<Choices...>(c, s.whole, options); });
    default: throw std::logic_error("no such operation");
  }
}

template <class T, bool every, class... Choices>
void combine(Ask& ask) {
  using namespace meshwise;
  const Spans<T> s(ask);
  const auto& options = ask.options;
  const int root = ask.c->root_rank();
  Communicator& c = *ask.communicator;
  switch (ask.c->verb()) {
    case Verb::all_reduce:
      return in_manner<every>(
          ask, [&](auto&) { all_reduce<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_all_reduce<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_all_reduce<Choices...>(c, s.in, s.out, options); });
    case Verb::reduce_scatter:
      return in_manner<every>(
          ask, [&](auto&) { reduce_scatter<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_reduce_scatter<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_reduce_scatter<Choices...>(c, s.in, s.out, options); });
    case Verb::reduce_scatter_v:
      return in_manner<every>(
          ask, [&](auto&) { reduce_scatter_v<Choices...>(c, s.in, s.out, ask.counts, options); },
          [&](auto&) { return start_reduce_scatter_v<Choices...>(c, s.in, s.out, ask.counts, options); },
          [&](auto&) { return prepare_reduce_scatter_v<Choices...>(c, s.in, s.out, ask.counts, options); });
    case Verb::reduce:
      return in_manner<every>(
          ask, [&](auto&) { reduce<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return start_reduce<Choices...>(c, s.in, s.out, root, options); },
          [&](auto&) { return prepare_reduce<Choices...>(c, s.in, s.out, root, options); });
    default: break;
  }
  // There is no average of some of the ranks.
  if constexpr (meshwise::detail::Scanning<T, Choices...>) {
    if (ask.c->verb() == Verb::inclusive_scan) {
      return in_manner<every>(
          ask, [&](auto&) { inclusive_scan<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_inclusive_scan<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_inclusive_scan<Choices...>(c, s.in, s.out, options); });
    }
    if (ask.c->verb() == Verb::exclusive_scan) {
      return in_manner<every>(
          ask, [&](auto&) { exclusive_scan<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return start_exclusive_scan<Choices...>(c, s.in, s.out, options); },
          [&](auto&) { return prepare_exclusive_scan<Choices...>(c, s.in, s.out, options); });
    }
  }
  throw std::logic_error("no such operation");
}

/// Schedules named by their types.
template <class T>
void combine_by_policy(Ask& ask) {
  switch (ask.c->verb()) {
    case Verb::all_reduce: return combine<T, true, meshwise::HalvingDoubling, meshwise::Sum>(ask);
    case Verb::reduce_scatter:
    case Verb::reduce_scatter_v: return combine<T, true, meshwise::Sum, meshwise::Circulant>(ask);
    case Verb::reduce: return combine<T, true, meshwise::Knomial<3>>(ask);
    default: return combine<T, true, meshwise::RecursiveDoubling>(ask);
  }
}

template <class T, Item item, Combining how_combined, class C>
void combine_as(Ask& ask) {
  constexpr bool every = in_every_manner(item, how_combined);
  if constexpr (with_one_span(item, how_combined)) {
    if (ask.one_span) return combine_one_span<T, every, C>(ask);
  }
  combine<T, every, C>(ask);
}

template <class T, Item item>
void combine_elements(Ask& ask) {
  if constexpr (item == Item::i32) {
    if (by_policy(*ask.c)) return combine_by_policy<T>(ask);
  }
  switch (ask.c->combining()) {
    case Combining::sum: return combine_as<T, item, Combining::sum, meshwise::Sum>(ask);
    case Combining::product: return combine_as<T, item, Combining::product, meshwise::Product>(ask);
    case Combining::min: return combine_as<T, item, Combining::min, meshwise::Min>(ask);
    case Combining::max: return combine_as<T, item, Combining::max, meshwise::Max>(ask);
    case Combining::average: return combine_as<T, item, Combining::average, meshwise::Average>(ask);
    case Combining::pre_multiplied:
      return combine_as<T, item, Combining::pre_multiplied, meshwise::PreMultipliedSum>(ask);
    case Combining::commuting: return combine_as<T, item, Combining::commuting, Commuting>(ask);
    case Combining::ordered: return combine_as<T, item, Combining::ordered, Ordered>(ask);
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (ask.c->combining()) {
      case Combining::bit_and: return combine_as<T, item, Combining::bit_and, meshwise::BitAnd>(ask);
      case Combining::bit_or: return combine_as<T, item, Combining::bit_or, meshwise::BitOr>(ask);
      case Combining::bit_xor: return combine_as<T, item, Combining::bit_xor, meshwise::BitXor>(ask);
      case Combining::logical_and: return combine_as<T, item, Combining::logical_and, meshwise::LogicalAnd>(ask);
      case Combining::logical_or: return combine_as<T, item, Combining::logical_or, meshwise::LogicalOr>(ask);
      case Combining::logical_xor: return combine_as<T, item, Combining::logical_xor, meshwise::LogicalXor>(ask);
      default: break;
    }
  }
  throw std::logic_error("no such combination");
}

}  // namespace conformance
