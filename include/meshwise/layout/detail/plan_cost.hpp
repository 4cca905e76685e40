// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/layout/layout_value.hpp"

namespace meshwise::detail {

/// Shares of a tensor as multiples of 4^-16, exact for every layout of 8 axes that count as 4 and every overlap of two.
using Share = std::int64_t;

/// The share that n axes leave: 4^-n.
constexpr Share share_after(int n) { return Share{1} << (2 * (16 - n)); }

/// A set of axes, bit a for axis a.
using AxisBits = unsigned;
constexpr bool has_axis(AxisBits set, int axis) { return (set >> axis & 1U) != 0; }
constexpr AxisBits bit_of(int axis) { return 1U << axis; }
constexpr int count_of(AxisBits set) {
  int n = 0;
  for (; set != 0; set &= set - 1) ++n;
  return n;
}

/// The axes on which a layout has a kind of placement.
constexpr AxisBits axes_with(const LayoutValue& l, PlacementKind kind) {
  AxisBits set = 0;
  for (int a = 0; a < l.axes; ++a) {
    if (l.kind[a] == kind) set |= bit_of(a);
  }
  return set;
}
constexpr int sharded_axes(const LayoutValue& l) { return count_of(axes_with(l, PlacementKind::shard)); }

/// How many entries of dim d, major ones first, are the same in two layouts.
constexpr int common_prefix(const LayoutValue& a, const LayoutValue& b, int d) {
  int n = 0;
  while (n < a.split[d] && n < b.split[d] && a.order[d][n] == b.order[d][n] &&
         a.rule[a.order[d][n]] == b.rule[b.order[d][n]]) {
    ++n;
  }
  return n;
}

/// The axes along which ranks hold something else in one layout than in another: placement, dim, rule, reduction, or an
/// axis that is major to it differs. Groups along these axes convert independently of each other.
constexpr AxisBits moving_axes(const LayoutValue& from, const LayoutValue& to) {
  AxisBits moving = 0;
  for (int a = 0; a < from.axes; ++a) {
    if (from.kind[a] != to.kind[a] || from.op[a] != to.op[a]) moving |= bit_of(a);
  }
  for (int d = 0; d < from.dims; ++d) {
    const int same = common_prefix(from, to, d);
    for (int i = same; i < from.split[d]; ++i) moving |= bit_of(from.order[d][i]);
    for (int i = same; i < to.split[d]; ++i) moving |= bit_of(to.order[d][i]);
  }
  return moving;
}

/// k, where 4^-k is the share of the tensor that a rank holds in both of two layouts on average.
///
/// An index of a dim is a row of digits in base 4, and the i-th axis of the dim says the i-th digit. Both layouts say
/// max(|a|, |b|) digits of it; where both say the i-th, the two axes have the same coordinate or nothing is common, and
/// of such equations those count that do not follow from others. Cut by different rules, the digits from there on are
/// independent. Partial axes hold whole pieces.
constexpr int overlap_exponent(const LayoutValue& a, const LayoutValue& b) {
  int root[LayoutValue::most_axes]{};
  for (int i = 0; i < a.axes; ++i) root[i] = i;
  const auto find = [&root](int x) {
    while (root[x] != x) x = root[x];
    return x;
  };
  int exponent = 0;
  for (int d = 0; d < a.dims; ++d) {
    const int n = a.split[d], m = b.split[d];
    int i = 0;
    for (; i < n && i < m; ++i) {
      const int x = a.order[d][i], y = b.order[d][i];
      if (a.rule[x] != b.rule[y] || (x != y && a.rule[x] == SplitRule::counted)) break;
      ++exponent;
      if (x == y) continue;
      const int rx = find(x), ry = find(y);
      if (rx != ry) {
        root[rx] = ry;
        ++exponent;
      }
    }
    exponent += i == n || i == m ? (n > m ? n : m) - i : n + m - 2 * i;
  }
  return exponent;
}

/// What a rank receives when layouts without sums in between change in one exchange: what it will hold and does not.
constexpr Share exchange_share(const LayoutValue& from, const LayoutValue& to) {
  if (moving_axes(from, to) == 0) return 0;
  return share_after(sharded_axes(to)) - share_after(overlap_exponent(from, to));
}
/// What it receives when the sums over n axes end scattered, or everywhere. held: how many axes shard the summands.
constexpr Share scatter_share(int held, int n) { return share_after(held) - share_after(held + n); }
constexpr Share reduce_share(int held, int n) { return 2 * scatter_share(held, n); }

}  // namespace meshwise::detail
