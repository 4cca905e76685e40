// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/split.hpp"

namespace meshwise {

/// Indices at equal distances: begin, begin + step, ..., `count` of them.
struct Progression {
  std::size_t begin = 0;
  std::size_t count = 0;
  std::size_t step = 1;

  constexpr std::size_t at(std::size_t i) const { return begin + i * step; }
  /// Of one that is not empty.
  constexpr std::size_t last() const { return at(count - 1); }
  friend constexpr bool operator==(const Progression&, const Progression&) = default;
};

/// An ascending list of indices, as progressions: which of N global indices somebody holds, in local order.
///
/// Whatever cuts such a list into parts gives such lists again, so that rules nest. Up to four progressions need no
/// allocation. A plain value; cost of everything but `at` and `find` in a range: linear in the progressions.
class Positions {
 public:
  constexpr Positions() = default;
  constexpr Positions(Range range) { append({range.begin, range.size, 1}); }  // NOLINT: a range is such a list

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr detail::View<Progression> progressions() const {
    return {pieces_ <= few ? few_.data() : many_.data(), pieces_};
  }

  /// Whether the indices follow each other without gaps; of none and of one they do.
  constexpr bool is_range() const { return pieces_ == 0 || (pieces_ == 1 && few_[0].step == 1); }
  /// Of a list that is one: an empty one begins at 0.
  constexpr Range range() const { return {pieces_ == 0 ? 0 : few_[0].begin, size_}; }

  /// Index number i of the list, i < size().
  constexpr std::size_t at(std::size_t i) const {
    const detail::View<Progression> all = progressions();
    std::size_t p = 0;
    for (; i >= all[p].count; ++p) i -= all[p].count;
    return all[p].at(i);
  }

  /// The place of an index in the list, or size() if it is not among them.
  constexpr std::size_t find(std::size_t index) const {
    std::size_t before = 0;
    for (const Progression& p : progressions()) {
      if (index < p.begin) break;
      if (index <= p.last()) return (index - p.begin) % p.step == 0 ? before + (index - p.begin) / p.step : size_;
      before += p.count;
    }
    return size_;
  }

  /// Adds indices behind the last one; they must be larger. Continues the last progression where it can.
  constexpr void append(Progression next) {
    if (next.count == 0) return;
    if (next.count == 1) next.step = 1;
    size_ += next.count;
    if (pieces_ != 0) {
      Progression& last = pieces_ <= few ? few_[pieces_ - 1] : many_.back();
      const std::size_t gap = next.begin - last.last();
      if ((last.count == 1 || gap == last.step) && (next.count == 1 || gap == next.step)) {
        last = {last.begin, last.count + next.count, gap};
        return;
      }
    }
    if (pieces_ < few) {
      few_[pieces_] = next;
    } else {
      if (pieces_ == few) many_.append(few_.data(), few_.data() + few);
      many_.push_back(next);
    }
    ++pieces_;
  }

  /// `count` indices from number `first` on.
  constexpr Positions slice(std::size_t first, std::size_t count) const {
    Positions result;
    result.append_slice(*this, first, count);
    return result;
  }
  constexpr void append_slice(const Positions& from, std::size_t first, std::size_t count) {
    for (const Progression& p : from.progressions()) {
      if (count == 0) return;
      if (first >= p.count) {
        first -= p.count;
        continue;
      }
      const std::size_t taken = p.count - first < count ? p.count - first : count;
      append({p.at(first), taken, p.step});
      count -= taken;
      first = 0;
    }
  }

  /// Every n-th index, from number `first` on.
  constexpr Positions every(std::size_t n, std::size_t first) const {
    Positions result;
    for (const Progression& p : progressions()) {
      if (first < p.count) {
        const std::size_t taken = (p.count - first + n - 1) / n;
        result.append({p.at(first), taken, p.step * n});
        first += taken * n;
      }
      first -= p.count;
    }
    return result;
  }

  /// Whether both list the same indices, however they are put together.
  friend constexpr bool operator==(const Positions& a, const Positions& b) {
    if (a.size_ != b.size_) return false;
    std::size_t i = 0, j = 0, done_i = 0, done_j = 0;
    const detail::View<Progression> x = a.progressions(), y = b.progressions();
    while (i < x.size()) {
      const std::size_t left_i = x[i].count - done_i, left_j = y[j].count - done_j;
      const std::size_t n = left_i < left_j ? left_i : left_j;
      if (x[i].at(done_i) != y[j].at(done_j) || x[i].at(done_i + n - 1) != y[j].at(done_j + n - 1)) return false;
      done_i = n == left_i ? 0 : done_i + n;
      done_j = n == left_j ? 0 : done_j + n;
      i += n == left_i ? 1 : 0;
      j += n == left_j ? 1 : 0;
    }
    return true;
  }

 private:
  static constexpr std::size_t few = 4;

  std::size_t size_ = 0;
  std::size_t pieces_ = 0;
  std::array<Progression, few> few_{};
  detail::List<Progression> many_;  // all of them, once they are more than a few
};

/// The part of a list by floor(k m / n): what `split` does to a range.
constexpr Positions floor_part(const Positions& all, std::size_t parts, std::size_t k) {
  const Range part = split(all.size(), parts, k);
  return all.slice(part.begin, part.size);
}

/// Parts of ceil(m / n) indices each, as long as they last.
constexpr Range chunk(std::size_t count, std::size_t parts, std::size_t k) {
  const std::size_t each = count / parts + (count % parts == 0 ? 0 : 1);
  const auto begin = [&](std::size_t part) { return each == 0 || part > count / each ? count : part * each; };
  return {begin(k), begin(k + 1) - begin(k)};
}
constexpr Positions chunk_part(const Positions& all, std::size_t parts, std::size_t k) {
  const Range part = chunk(all.size(), parts, k);
  return all.slice(part.begin, part.size);
}

/// Of 2n parts by floor, number k and number 2n - 1 - k: the first and the last rank share the work of a triangle.
constexpr Positions zigzag_part(const Positions& all, std::size_t parts, std::size_t k) {
  const Range front = split(all.size(), 2 * parts, k), back = split(all.size(), 2 * parts, 2 * parts - 1 - k);
  Positions result = all.slice(front.begin, front.size);
  result.append_slice(all, back.begin, back.size);
  return result;
}

/// Every n-th index, from number k on.
constexpr Positions stripe_part(const Positions& all, std::size_t parts, std::size_t k) { return all.every(parts, k); }

/// counts[k] indices, behind those of the parts before. The counts add up to the size of the list.
constexpr Positions counted_part(const Positions& all, std::span<const std::size_t> counts, std::size_t k) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < k; ++i) begin += counts[i];
  return all.slice(begin, counts[k]);
}

/// Indices that two lists share: numbers a, a + step_a, ... of the first are numbers b, b + step_b, ... of the second.
struct CommonPlaces {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t count = 0;
  std::size_t step_a = 1;
  std::size_t step_b = 1;

  friend constexpr bool operator==(const CommonPlaces&, const CommonPlaces&) = default;
};

namespace detail {

/// Adds places behind the last ones, as one progression where they continue it on both sides.
constexpr void append_places(List<CommonPlaces>& all, CommonPlaces next) {
  if (next.count == 1) next.step_a = next.step_b = 1;
  if (!all.empty()) {
    CommonPlaces& last = all.back();
    const std::size_t gap_a = next.a - (last.a + (last.count - 1) * last.step_a);
    const std::size_t gap_b = next.b - (last.b + (last.count - 1) * last.step_b);
    if ((last.count == 1 || (gap_a == last.step_a && gap_b == last.step_b)) &&
        (next.count == 1 || (gap_a == next.step_a && gap_b == next.step_b))) {
      last = {last.a, last.b, last.count + next.count, gap_a, gap_b};
      return;
    }
  }
  all.push_back(next);
}

/// The indices that two progressions share, as one.
constexpr Progression meet(const Progression& p, const Progression& q) {
  const Progression& coarse = p.step >= q.step ? p : q;
  const Progression& fine = p.step >= q.step ? q : p;
  std::size_t divisor = fine.step;
  for (std::size_t rest = coarse.step; rest != 0;) {
    const std::size_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  std::size_t i = 0;
  if (coarse.begin < fine.begin) i = (fine.begin - coarse.begin - 1) / coarse.step + 1;
  // Among as many neighbours as that there is one that both have, or none at all.
  for (std::size_t tries = fine.step / divisor; tries > 0 && i < coarse.count; --tries, ++i) {
    const std::size_t first = coarse.at(i);
    if (first > fine.last()) break;
    if ((first - fine.begin) % fine.step != 0) continue;
    const std::size_t end = coarse.last() < fine.last() ? coarse.last() : fine.last();
    const std::size_t ratio = fine.step / divisor;
    return {first, (end - first) / coarse.step / ratio + 1, coarse.step * ratio};
  }
  return {};
}

}  // namespace detail

/// The indices that two lists share, in ascending order, each with its number in both.
///
/// Cost: linear in the progressions, times the smaller step where both have steps; allocates the result.
constexpr detail::List<CommonPlaces> common(const Positions& a, const Positions& b) {
  detail::List<CommonPlaces> result;
  const detail::View<Progression> x = a.progressions(), y = b.progressions();
  std::size_t before_a = 0, before_b = 0;
  for (std::size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    const Progression shared = detail::meet(x[i], y[j]);
    if (shared.count != 0) {
      detail::append_places(result, {before_a + (shared.begin - x[i].begin) / x[i].step,
                                     before_b + (shared.begin - y[j].begin) / y[j].step, shared.count,
                                     shared.step / x[i].step, shared.step / y[j].step});
    }
    if (x[i].last() <= y[j].last()) {
      before_a += x[i++].count;
    } else {
      before_b += y[j++].count;
    }
  }
  return result;
}

}  // namespace meshwise
