// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/owned_any.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/core/positions.hpp"
#include "meshwise/schedule/routes.hpp"
#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/conversion.hpp"

namespace meshwise::detail {

/// The extents of every dim, with the counts by which a layout cuts it.
using ExtentsOnTheWay = std::array<const Extent*, LayoutValue::most_dims>;
/// A layout before or after an exchange.
struct ExchangeEnd {
  const LayoutValue* layout;
  ExtentsOnTheWay extents;
};

/// The blocks of an exchange between two layouts, for the ranks of one group.
///
/// Before, the ranks fall into cells: those of one cell hold the same indices of every dim. The same afterwards. A
/// block is what a cell before and a cell afterwards have in common; it lies at the same place at all ranks of a cell.
/// Where one of the blocks is no region of the local piece, that side is packed: its blocks lie one behind the other.
/// Cost: cells before times cells afterwards; ranks that hold the same are one cell.
class ExchangeBlocks {
 public:
  ExchangeBlocks(const GridView& view, unsigned set, const ExchangeEnd& from_end, const ExchangeEnd& to_end)
      : view_(view), set_(set), layouts_{*from_end.layout, *to_end.layout} {
    for (int d = 0; d < from_end.layout->dims; ++d) {
      extents_[0].push_back(*from_end.extents[static_cast<std::size_t>(d)]);
      extents_[1].push_back(*to_end.extents[static_cast<std::size_t>(d)]);
    }
    const Seat seat(view_);
    const GroupAxes group(view_, set);
    const int ranks = view_.along(set).line->size();
    List<Seat> seats(static_cast<std::size_t>(ranks), seat);
    for (int rank = 0; rank < ranks; ++rank) {
      int rest = rank;
      for (int i = group.count; i-- > 0;) {
        const auto axis = static_cast<std::size_t>(group.axis[static_cast<std::size_t>(i)]);
        seats[static_cast<std::size_t>(rank)].coordinate[axis] = rest % seat.size[axis];
        rest /= seat.size[axis];
      }
    }
    Side from = cells(0, seats), to = cells(1, seats);
    List<Block> blocks = meet(from, to);
    find_regions(blocks, from, 0);
    find_regions(blocks, to, 1);
    const auto me = static_cast<std::size_t>(view_.along(set).line->rank());
    for (std::size_t side = 0; side < 2; ++side) {
      if (!packed_[side]) continue;
      for (const int block : (side == 0 ? routes_.held : routes_.wanted)[me]) {
        own_[side].push_back(std::move(blocks[static_cast<std::size_t>(block)][side]));
      }
    }
  }

  bool is_for(const GridView& view, unsigned set, const ExchangeEnd& from, const ExchangeEnd& to) const {
    if (!(view_ == view) || set != set_ || !(*from.layout == layouts_[0]) || !(*to.layout == layouts_[1])) return false;
    for (std::size_t d = 0; d < extents_[0].size(); ++d) {
      if (!(extents_[0][d] == *from.extents[d]) || !(extents_[1][d] == *to.extents[d])) return false;
    }
    return true;
  }

  const Routes& routes() const { return routes_; }
  std::size_t elements() const { return elements_; }
  bool packs_input() const { return packed_[0]; }
  bool packs_output() const { return packed_[1]; }

  /// Copies this rank's blocks of a local piece into memory in which they lie one behind the other.
  void pack(std::size_t element, const std::byte* piece, std::byte* packed) const {
    for (const Picked& block : own_[0]) {
      copy_picked(block.shape, block.indices, element, piece, packed);
      packed += picked_size(block.indices) * element;
    }
  }
  void unpack(std::size_t element, const std::byte* packed, std::byte* piece) const {
    for (const Picked& block : own_[1]) {
      copy_back(block.shape, block.indices, element, packed, piece);
      packed += picked_size(block.indices) * element;
    }
  }

  /// The regions of the exchange. context: ExchangeBlocks.
  static Region locate(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
    const ExchangeBlocks& blocks = *static_cast<const ExchangeBlocks*>(context);
    const bool input = buffer == Buffer::input;
    const auto& slots = (input ? shape.routes->held : shape.routes->wanted)[static_cast<std::size_t>(rank)];
    return blocks.regions_[input ? 0 : 1][static_cast<std::size_t>(slots[static_cast<std::size_t>(slot)])];
  }

 private:
  /// What one side picks out of its local piece.
  struct Picked {
    List<std::size_t> shape;
    List<Positions> indices;
  };
  using Block = std::array<Picked, 2>;

  /// Cells of one side.
  struct Side {
    List<std::size_t> cell_of;             // by rank
    List<List<Positions>> held;            // by cell, of every dim
    std::vector<std::vector<int>> blocks;  // by cell
  };

  Side cells(std::size_t side, const List<Seat>& seats) const {
    const LayoutValue& layout = layouts_[side];
    Side result;
    List<std::size_t> known;  // the number of each cell, from 1, by the coordinates that make it
    for (const Seat& seat : seats) {
      std::size_t number = 0, all = 1;
      for (int a = 0; a < layout.axes; ++a) {
        if ((set_ >> a & 1u) == 0 || layout.kind[a] != PlacementKind::shard) continue;
        number = number * seat.parts(a) + seat.part(a);
        all *= seat.parts(a);
      }
      known.resize(all, 0);
      if (known[number] == 0) {
        List<Positions> held;
        for (int d = 0; d < layout.dims; ++d) {
          held.push_back(positions_of(layout, d, extents_[side][static_cast<std::size_t>(d)], seat));
        }
        result.held.push_back(std::move(held));
        known[number] = result.held.size();
      }
      result.cell_of.push_back(known[number] - 1);
    }
    result.blocks.resize(result.held.size());
    return result;
  }

  /// What a cell before and one afterwards have in common; no dims if that is nothing.
  static Block common_block(const List<Positions>& from, const List<Positions>& to) {
    Block block;
    for (std::size_t d = 0; d < from.size(); ++d) {
      Positions a, b;
      for (const CommonPlaces& places : common(from[d], to[d])) {
        a.append({places.a, places.count, places.step_a});
        b.append({places.b, places.count, places.step_b});
      }
      if (a.empty()) return {};
      block[0].shape.push_back(from[d].size());
      block[1].shape.push_back(to[d].size());
      block[0].indices.push_back(std::move(a));
      block[1].indices.push_back(std::move(b));
    }
    return block;
  }

  /// Finds the blocks, numbers them by cell before, then by cell afterwards, and makes the routes.
  List<Block> meet(Side& from, Side& to) {
    List<Block> blocks;
    for (std::size_t i = 0; i < from.held.size(); ++i) {
      for (std::size_t j = 0; j < to.held.size(); ++j) {
        Block block = common_block(from.held[i], to.held[j]);
        if (block[0].shape.size() != from.held[i].size()) continue;
        from.blocks[i].push_back(static_cast<int>(blocks.size()));
        to.blocks[j].push_back(static_cast<int>(blocks.size()));
        elements_ += picked_size(block[0].indices);
        blocks.push_back(std::move(block));
      }
    }
    std::array<std::vector<std::vector<int>>, 2> slots;
    for (std::size_t side = 0; side < 2; ++side) {
      const Side& cells = side == 0 ? from : to;
      for (const std::size_t cell : cells.cell_of) slots[side].push_back(cells.blocks[cell]);
    }
    routes_ = Routes(static_cast<int>(blocks.size()), std::move(slots[0]), std::move(slots[1]));
    return blocks;
  }

  void find_regions(const List<Block>& blocks, const Side& cells, std::size_t side) {
    List<Region>& regions = regions_[side];
    for (const Block& block : blocks) {
      const MaybeRegion region = region_of(block[side].shape, block[side].indices);
      if (!region) packed_[side] = true;
      regions.push_back(*region);
    }
    if (!packed_[side]) return;
    for (const std::vector<int>& behind_another : cells.blocks) {
      std::size_t offset = 0;
      for (const int number : behind_another) {
        const auto at = static_cast<std::size_t>(number);
        const std::size_t n = picked_size(blocks[at][side].indices);
        regions[at] = {offset, n, n, 1};
        offset += n;
      }
    }
  }

  GridView view_;
  unsigned set_;
  std::array<LayoutValue, 2> layouts_;
  std::array<List<Extent>, 2> extents_;
  Routes routes_;
  std::size_t elements_ = 0;
  std::array<bool, 2> packed_{};
  std::array<List<Region>, 2> regions_;  // by block
  std::array<List<Picked>, 2> own_;      // what this rank packs and unpacks, in the order of slots
};

/// The exchanges that a mesh has seen lately.
struct ExchangeMemory {
  static constexpr std::size_t most = 16;
  List<Owned<ExchangeBlocks>> known;
  std::size_t oldest = 0;
};

/// Valid until the next call.
inline const ExchangeBlocks& blocks_between(const GridView& view, unsigned set, const ExchangeEnd& from,
                                            const ExchangeEnd& to) {
  OwnedAny& kept = view.state->kept;
  if (kept.get<ExchangeMemory>() == nullptr) kept.own(new ExchangeMemory);
  ExchangeMemory& memory = *kept.get<ExchangeMemory>();
  for (const Owned<ExchangeBlocks>& blocks : memory.known) {
    if (blocks->is_for(view, set, from, to)) return *blocks;
  }
  Owned<ExchangeBlocks> blocks(new ExchangeBlocks(view, set, from, to));
  if (memory.known.size() < ExchangeMemory::most) {
    memory.known.push_back(std::move(blocks));
    return *memory.known.back();
  }
  return *(memory.known[memory.oldest++ % ExchangeMemory::most] = std::move(blocks));
}

}  // namespace meshwise::detail
