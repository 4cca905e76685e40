// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/detail/plan_cost.hpp"
#include "meshwise/layout/detail/redistributing.hpp"
#include "meshwise/layout/transition_kind.hpp"

namespace meshwise::detail {

/// What becomes of the axes of a plan that are not simply moved by its exchange.
struct PlanChoice {
  AxisBits padded = 0;     ///< shards that become sums before anything else
  AxisBits slices = 0;     ///< cut before anything is sent
  AxisBits scattered = 0;  ///< sums that end in parts, by reduce_scatter
  AxisBits reduced = 0;    ///< sums that end everywhere, by all_reduce
  AxisBits kept = 0;       ///< end as sums, but are shards until the exchange is done
};

/// The choices of a plan in normal form: where slices and scattered sums go before the exchange, and where the shards
/// are kept that become Partial in the end.
///
/// Optimal for the bytes: if there are sums, every axis that can is cut before; each sum that is not reduced in place
/// is scattered right after the slices; and one exchange does the rest. So what is left to choose are places, such that
/// the overlap with what is wanted is largest. A sum whose axis ends replicated is reduced in place instead (`reduced`)
/// if that costs no more. Without sums only those axes are cut that belong there, because who holds more lacks less.
class PlanSearch {
 public:
  struct Result {
    bool found = false;
    Share received = 0;
    int collectives = 0;
    int unnamed = 0;
    PlanChoice choice;
    LayoutValue held;    ///< after slices, scattered sums and reductions
    LayoutValue wanted;  ///< after the exchange

    constexpr bool worse_than(Share bytes, int calls, int anonymous) const {
      if (!found || bytes != received) return !found || bytes < received;
      return calls != collectives ? calls < collectives : anonymous < unnamed;
    }
  };

  /// held: the layout at first, without the sums that are reduced. wanted: the layout that the exchange leads to,
  /// without the axes that are kept. leaves: how many complete choices may be weighed.
  constexpr PlanSearch(const LayoutValue& held, const LayoutValue& wanted, const PlanChoice& choice, int leaves)
      : held_(held), wanted_(wanted), choice_(choice), leaves_(leaves) {
    const int sums = count_of(choice.scattered);
    const bool cut_all = choice.scattered != 0 || choice.reduced != 0;
    const int cut = sharded_axes(held) + (cut_all ? count_of(choice.slices) : 0);
    base_ = scatter_share(cut, sums) + reduce_share(cut + sums, count_of(choice.reduced));
    shards_wanted_ = sharded_axes(wanted) + count_of(choice.kept);
    least_ = overlap_exponent(held, wanted);
    if (least_ < cut + sums) least_ = cut + sums;
    if (least_ < shards_wanted_) least_ = shards_wanted_;
  }

  /// The best choice, if one costs at most as much as `best`.
  constexpr void improve(Result& best) {
    if (hopeless(least_, best)) return;
    explore(choice_.slices, choice_.scattered, choice_.kept, best);
  }

 private:
  /// An axis in its place, until the end of the scope.
  class Trial {
   public:
    constexpr Trial(LayoutValue& layout, int axis, int d, SplitRule rule)
        : layout_(layout), axis_(axis), kind_(layout.kind[axis]), op_(layout.op[axis]) {
      layout.op[axis] = ReductionKind::none;
      layout.shard(axis, d, rule);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    constexpr ~Trial() {
      layout_.replicate(axis_);
      layout_.kind[axis_] = kind_;
      layout_.op[axis_] = op_;
    }

   private:
    LayoutValue& layout_;
    int axis_;
    PlacementKind kind_;
    ReductionKind op_;
  };

  constexpr int overlap_with(LayoutValue& side, int axis, int d, SplitRule rule) const {
    const Trial trial(side, axis, d, rule);
    return overlap_exponent(held_, wanted_);
  }

  constexpr void explore(AxisBits slices, AxisBits sums, AxisBits kept, Result& best) {
    const AxisBits now = slices != 0 ? slices : sums != 0 ? sums : kept;
    if (now == 0) {
      weigh(best);
      return;
    }
    LayoutValue& side = slices != 0 || sums != 0 ? held_ : wanted_;
    const LayoutValue& other = slices != 0 || sums != 0 ? wanted_ : held_;
    const auto go_on = [&](int axis, int d, SplitRule rule) {
      const Trial trial(side, axis, d, rule);
      explore(slices & ~bit_of(axis), slices != 0 ? sums : sums & ~bit_of(axis),
              slices != 0 || sums != 0 ? kept : kept & ~bit_of(axis), best);
    };

    // What can go where it belongs goes there.
    for (int d = 0; d < side.dims; ++d) {
      const int at = side.split[d];
      if (at >= other.split[d] || common_prefix(side, other, d) != at) continue;
      const int axis = other.order[d][at];
      if (!has_axis(now, axis)) continue;
      go_on(axis, d, other.rule[axis]);
      return;
    }

    if (slices != 0 && choice_.scattered == 0 && choice_.reduced == 0) {
      explore(0, sums, kept, best);
      return;
    }

    // Otherwise anywhere, best places first. Axes that the other side does not shard are all alike, as are empty dims.
    std::int8_t overlap[LayoutValue::most_axes][LayoutValue::most_dims]{};
    int least = 127;
    int most = 0;
    bool alike = false;
    for (int axis = 0; axis < side.axes; ++axis) {
      if (!has_axis(now, axis)) continue;
      if (!other.is(axis, PlacementKind::shard)) {
        if (alike) continue;
        alike = true;
      }
      bool empty = false;
      for (int d = 0; d < side.dims; ++d) {
        if (side.split[d] == 0 && other.split[d] == 0) {
          if (empty) continue;
          empty = true;
        }
        const int k = overlap_with(side, axis, d, rule_beside(side, other, d));
        overlap[axis][d] = static_cast<std::int8_t>(k);
        if (k < least) least = k;
        if (k > most) most = k;
      }
    }
    for (int k = least; k <= most; ++k) {
      for (int axis = 0; axis < side.axes; ++axis) {
        for (int d = 0; d < side.dims; ++d) {
          if (overlap[axis][d] != k) continue;
          if (hopeless(k, best)) return;
          go_on(axis, d, rule_beside(side, other, d));
        }
      }
    }
  }

  /// The rule by which an axis is put at the minor end of a dim: that of what it may coincide with.
  static constexpr SplitRule rule_beside(const LayoutValue& side, const LayoutValue& other, int d) {
    const int at = side.split[d];
    if (at >= other.split[d]) return SplitRule::contiguous;
    const SplitRule rule = other.rule[other.order[d][at]];
    return rule == SplitRule::counted ? SplitRule::contiguous : rule;
  }

  /// Whether choices that have an overlap of 4^-k at most cannot be better than the best, or should not be tried.
  constexpr bool hopeless(int k, const Result& best) const {
    if (leaves_ <= 0) return true;
    if (!best.found) return false;
    const Share least = base_ + share_after(shards_wanted_) - share_after(k < least_ ? least_ : k);
    return ties_ > 0 ? least > best.received : least >= best.received;
  }

  /// Adds up a complete choice.
  constexpr void weigh(Result& best) {
    --leaves_;
    const bool exchange = moving_axes(held_, wanted_) != 0;
    const int unnamed = exchange && name_of_change(held_, wanted_).what == Transition::exchange ? 1 : 0;
    const Share bytes = base_ + exchange_share(held_, wanted_);
    const int scatters = scatters_of(held_, choice_.scattered);
    const int calls = scatters + (choice_.reduced != 0 ? 1 : 0) + (exchange ? 1 : 0);
    if (!best.worse_than(bytes, calls, unnamed)) {
      --ties_;
      return;
    }
    best = {true, bytes, calls, unnamed, choice_, held_, wanted_};
    best.choice.slices &= axes_with(held_, PlacementKind::shard);
    // Nothing beats the largest overlap, one scatter, and a change that has a name.
    if (overlap_exponent(held_, wanted_) == least_ && unnamed == 0 && scatters <= 1) leaves_ = 0;
  }

 public:
  /// Into how many reduce_scatters the sums at the minor ends of the dims fall: one for each run of contiguous axes of
  /// a dim, and one for each axis with another rule.
  static constexpr int scatters_of(const LayoutValue& held, AxisBits sums) {
    int n = 0;
    for (int d = 0; d < held.dims && sums != 0; ++d) {
      bool open = false;
      for (int i = 0; i < held.split[d]; ++i) {
        const int axis = held.order[d][i];
        if (!has_axis(sums, axis)) continue;
        const bool contiguous = held.rule[axis] == SplitRule::contiguous;
        if (!open || !contiguous) ++n;
        open = contiguous;
      }
    }
    return n;
  }

 private:
  LayoutValue held_;
  LayoutValue wanted_;
  PlanChoice choice_;
  Share base_ = 0;
  int leaves_ = 0;
  int ties_ = 8;  ///< how many choices may be weighed for their number of collectives only
  int least_ = 0;
  int shards_wanted_ = 0;
};

}  // namespace meshwise::detail
