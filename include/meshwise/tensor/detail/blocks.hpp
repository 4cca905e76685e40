// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/layout/layout_value.hpp"

namespace meshwise::detail {

/// How an axis of n ranks cuts a dim that other axes have cut into `parts / n` before: part k along the axis is part
/// first + k of `parts` of the global extent, counted from where this group's own piece begins.
///
/// Divides once, since a box is asked for each of its parts; see split_begin.
class Cut {
 public:
  Cut(std::size_t extent, std::size_t parts, std::size_t first)
      : each_(extent / parts), rest_(extent % parts), parts_(parts), first_(first), base_(place(first)) {}

  std::size_t begin(std::size_t k) const { return place(first_ + k) - base_; }
  std::size_t size(std::size_t k) const { return rest_ == 0 ? each_ : place(first_ + k + 1) - place(first_ + k); }

 private:
  std::size_t place(std::size_t k) const { return each_ * k + (rest_ == 0 ? 0 : rest_ * k / parts_); }

  std::size_t each_;
  std::size_t rest_;
  std::size_t parts_;
  std::size_t first_;
  std::size_t base_;
};

/// A dense box [outer, dim, inner] that is cut along the middle.
struct CutBox {
  Cut cut;
  std::size_t outer;
  std::size_t inner;
  std::size_t length;  ///< of the dim

  CutBox(const Cut& along, std::size_t ranks, std::size_t before, std::size_t after)
      : cut(along), outer(before), inner(after), length(cut.begin(ranks)) {}

  /// Part k inside the whole box.
  Region inside(std::size_t k) const { return {cut.begin(k) * inner, cut.size(k) * inner, length * inner, outer}; }
  /// Part k alone.
  Region alone(std::size_t k) const {
    const std::size_t n = cut.size(k) * inner * outer;
    return {0, n, n, 1};
  }
};

/// Regions of an all_gather into, or a reduce_scatter out of, a CutBox.
inline Region locate_cut(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const CutBox& box = *static_cast<const CutBox*>(context);
  const bool whole = (shape.operation == Operation::all_gather) == (buffer == Buffer::output);
  return whole ? box.inside(static_cast<std::size_t>(slot)) : box.alone(static_cast<std::size_t>(rank));
}

/// Which part of a dim each rank of a group has, where several axes cut it in another order than that of the ranks.
struct PartOrder {
  std::array<std::size_t, LayoutValue::most_axes> size{};    // of the group's axes, the last one varying fastest
  std::array<std::size_t, LayoutValue::most_axes> weight{};  // of a coordinate in the number of the part
  int axes = 0;

  std::size_t part(int rank) const {
    auto rest = static_cast<std::size_t>(rank);
    std::size_t result = 0;
    for (int i = axes; i-- > 0;) {
      const auto at = static_cast<std::size_t>(i);
      result += rest % size[at] * weight[at];
      rest /= size[at];
    }
    return result;
  }
};

/// The same for a box that several axes cut.
struct OrderedCutBox {
  CutBox box;
  PartOrder order;
};
inline Region locate_ordered_cut(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const OrderedCutBox& ordered = *static_cast<const OrderedCutBox*>(context);
  const bool whole = (shape.operation == Operation::all_gather) == (buffer == Buffer::output);
  return whole ? ordered.box.inside(ordered.order.part(slot)) : ordered.box.alone(ordered.order.part(rank));
}

/// The same for parts that are not runs of the dim: where each rank's part lies in the whole.
struct PartRegions {
  List<Region> parts;
};
inline Region locate_part(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const List<Region>& parts = static_cast<const PartRegions*>(context)->parts;
  const bool whole = (shape.operation == Operation::all_gather) == (buffer == Buffer::output);
  if (whole) return parts[static_cast<std::size_t>(slot)];
  const std::size_t n = parts[static_cast<std::size_t>(rank)].size();
  return {0, n, n, 1};
}

/// Regions of an all_reduce: the elements split among the ranks, wherever dims begin.
struct FlatBox {
  std::size_t count = 0;
};
inline Region locate_flat(const void* context, const Shape& shape, Buffer, int, int slot) {
  const std::size_t count = static_cast<const FlatBox*>(context)->count;
  const Range part = split(count, static_cast<std::size_t>(shape.ranks), static_cast<std::size_t>(slot));
  return {part.begin, part.size, part.size, 1};
}

/// A dense box [outer, first dim, between, second dim, inner] that changes from being cut along one of its dims to
/// being cut along the other.
struct ExchangeBox {
  Cut from;  ///< cut before, whole afterwards
  Cut to;    ///< whole before, cut afterwards
  bool from_is_first;
  std::size_t outer;
  std::size_t between;
  std::size_t inner;
  std::size_t from_length;
  std::size_t to_length;

  ExchangeBox(const Cut& before, const Cut& afterwards, bool before_is_first, std::size_t ranks, std::size_t outside,
              std::size_t middle, std::size_t inside)
      : from(before),
        to(afterwards),
        from_is_first(before_is_first),
        outer(outside),
        between(middle),
        inner(inside),
        from_length(from.begin(ranks)),
        to_length(to.begin(ranks)) {}

  /// Elements of the whole box.
  std::size_t size() const { return outer * from_length * between * to_length * inner; }

  /// Part k of the dim that is cut before, in a piece that is cut along the other one and has `other` of its indices.
  Region inside_from(std::size_t k, std::size_t other) const {
    return inside(from, from_length, from_is_first, k, other);
  }
  /// The same for the dim that is cut afterwards.
  Region inside_to(std::size_t k, std::size_t other) const { return inside(to, to_length, !from_is_first, k, other); }

 private:
  Region inside(const Cut& cut, std::size_t length, bool is_first, std::size_t k, std::size_t other) const {
    const std::size_t run = is_first ? between * other * inner : inner;
    const std::size_t repeat = is_first ? outer : outer * other * between;
    return {cut.begin(k) * run, cut.size(k) * run, length * run, repeat};
  }
};
inline Region locate_exchange(const void* context, const Shape&, Buffer buffer, int rank, int slot) {
  const ExchangeBox& box = *static_cast<const ExchangeBox*>(context);
  const auto r = static_cast<std::size_t>(rank);
  const auto s = static_cast<std::size_t>(slot);
  return buffer == Buffer::input ? box.inside_to(s, box.from.size(r)) : box.inside_from(s, box.to.size(r));
}

/// The same where several axes change together.
struct OrderedExchangeBox {
  ExchangeBox box;
  PartOrder order;
};
inline Region locate_ordered_exchange(const void* context, const Shape&, Buffer buffer, int rank, int slot) {
  const OrderedExchangeBox& ordered = *static_cast<const OrderedExchangeBox*>(context);
  const ExchangeBox& box = ordered.box;
  const std::size_t r = ordered.order.part(rank), s = ordered.order.part(slot);
  return buffer == Buffer::input ? box.inside_to(s, box.from.size(r)) : box.inside_from(s, box.to.size(r));
}

/// Copies a region's elements between a box and a dense piece: out of the box, or into it.
inline void copy_out(const Region& region, std::size_t element, const std::byte* box, std::byte* piece) {
  if (region.size() == 0) return;
  for (std::size_t i = 0; i < region.repeat; ++i) {
    std::memcpy(piece + i * region.run * element, box + (region.offset + i * region.stride) * element,
                region.run * element);
  }
}
inline void copy_in(const Region& region, std::size_t element, const std::byte* piece, std::byte* box) {
  if (region.size() == 0) return;
  for (std::size_t i = 0; i < region.repeat; ++i) {
    std::memcpy(box + (region.offset + i * region.stride) * element, piece + i * region.run * element,
                region.run * element);
  }
}

}  // namespace meshwise::detail
