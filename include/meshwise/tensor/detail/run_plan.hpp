// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/layout/transition_kind.hpp"
#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/conversion.hpp"
#include "meshwise/tensor/detail/exchange_blocks.hpp"
#include "meshwise/tensor/detail/facts.hpp"
#include "meshwise/tensor/detail/run_dense.hpp"

namespace meshwise::detail {

/// One part of a list of indices.
inline Positions part_by(SplitRule rule, const Positions& all, std::size_t parts, std::size_t part,
                         std::span<const std::size_t> counts) {
  switch (rule) {
    case SplitRule::chunked: return chunk_part(all, parts, part);
    case SplitRule::zigzag: return zigzag_part(all, parts, part);
    case SplitRule::striped: return stripe_part(all, parts, part);
    case SplitRule::counted: return counted_part(all, counts, part);
    default: return floor_part(all, parts, part);
  }
}

/// Carries out the plan of a conversion on one rank's local piece, step by step.
///
/// A step along axes that have one rank changes nothing but the name of what is held. Memory that a step has used up is
/// free before the next one allocates.
class PlanRunner {
 public:
  PlanRunner(const Conversion& conversion, const Range* held, LocalPiece piece)
      : c_(conversion), view_(conversion.view), seat_(view_), piece_(piece) {
    for (int d = 0; d < dims(); ++d) held_[number(d)] = held[d];
  }

  void run() {
    for (int i = 0; i < c_.kind.plan.count; ++i) {
      const PlanStep& step = c_.kind.plan.steps[i];
      bool alone = true;
      for (int a = 0; a < view_.axes; ++a) alone = alone && ((step.axes >> a & 1) == 0 || seat_.parts(a) == 1);
      if (alone) continue;
      step_ = i;
      perform(step, c_.kind.plan.before(i));
    }
    if (c_.kind.counted) count_anew();
  }

 private:
  static constexpr std::size_t number(int i) { return static_cast<std::size_t>(i); }
  int dims() const { return c_.kind.plan.from.dims; }

  void perform(const PlanStep& step, const LayoutValue& before) {
    LocalShape after = held_;
    for (int d = 0; d < dims(); ++d) after[number(d)].size = local_size(c_, step.after, d, seat_);
    if (piece_.storage.data() == nullptr) refuse_moved_from(view_);
    if (is_dense_collective(step)) {
      run_dense(c_, step, before, step_, held_.data(), piece_);
    } else {
      switch (step.what) {
        case Transition::all_reduce: run_all_reduce(c_, view_.along(step.axes), step_, size_of(held_), piece_); break;
        case Transition::reduce_scatter: reduce_scatter(step, after); break;
        case Transition::all_gather: all_gather(step, before, after); break;
        case Transition::all_to_all:
          if (step.dense) {
            all_to_all(step, before, after);
            break;
          }
          [[fallthrough]];
        case Transition::exchange: exchange(step, before, after); break;
        case Transition::slice: slice(step, before, after); break;
        case Transition::keep_first: keep_first(step); break;
        case Transition::pad: pad(step, before, after); break;
        case Transition::equal: break;
      }
    }
    held_ = after;
  }

  std::size_t product(const LocalShape& shape, int first, int last) const {
    std::size_t n = 1;
    for (int d = first; d < last; ++d) n *= shape[number(d)].size;
    return n;
  }
  std::size_t size_of(const LocalShape& shape) const { return product(shape, 0, dims()); }
  /// The sizes alone.
  struct Sizes {
    std::array<std::size_t, LayoutValue::most_dims> of{};
    std::size_t count = 0;
    operator std::span<const std::size_t>() const { return {of.data(), count}; }  // NOLINT: it is such a span
  };
  Sizes sizes(const LocalShape& shape) const {
    Sizes result;
    for (int d = 0; d < dims(); ++d) result.of[result.count++] = shape[number(d)].size;
    return result;
  }
  const std::byte* data() const { return piece_.data(c_); }

  using Parts = std::vector<std::vector<Positions>>;

  /// Calls body(regions, picked) for the parts of dim d that the axes of the step cut, in layout `cut`, out of a piece
  /// of shape `whole`. picked: null, or the parts where they are no regions; then they lie one behind the other.
  template <class Body>
  void with_parts(const PlanStep& step, const LayoutValue& cut, int d, const LocalShape& whole, const Body& body) {
    if (step.dense) {
      const OrderedCutBox ordered{CutBox(cut_of(c_, cut, d, step.axes), number(view_.along(step.axes).line->size()),
                                         product(whole, 0, d), product(whole, d + 1, dims())),
                                  order_of_parts(cut, d, step.axes, view_, seat_)};
      body(Regions{&locate_ordered_cut, &ordered}, nullptr);
      return;
    }
    PartRegions parts;
    Parts picked;
    const int axis = std::countr_zero(step.axes);
    bool packed = false;
    for (std::size_t k = 0; k < seat_.parts(axis); ++k) {
      std::vector<Positions> indices;
      for (int e = 0; e < cut.dims; ++e) indices.push_back(Range{0, whole[number(e)].size});
      indices[number(d)] =
          part_by(cut.rule[axis], indices[number(d)], seat_.parts(axis), k, c_.extent(cut, d).counts());
      const auto region = region_of(sizes(whole), indices);
      packed = packed || !region;
      parts.parts.push_back(region.value_or(Region{}));
      picked.push_back(std::move(indices));
    }
    if (packed) {
      std::size_t offset = 0;
      for (std::size_t k = 0; k < picked.size(); ++k) {
        const std::size_t n = picked_size(picked[k]);
        parts.parts[k] = {offset, n, n, 1};
        offset += n;
      }
    }
    body(Regions{&locate_part, &parts}, packed ? &picked : nullptr);
  }

  void reduce_scatter(const PlanStep& step, const LocalShape& shape) {
    const int d = step.after.dim[std::countr_zero(step.axes)];
    with_parts(step, step.after, d, held_, [&](const Regions& regions, const Parts* parts) {
      Storage packed;
      if (parts != nullptr) {
        packed = allocate(c_, size_of(held_));
        std::byte* next = packed.data();
        for (const std::vector<Positions>& part : *parts) {
          copy_picked(sizes(held_), part, c_.kind.element.size, data(), next);
          next += picked_size(part) * c_.kind.element.size;
        }
      }
      Storage result = allocate(c_, size_of(shape));
      view_.along(step.axes).run(call_of(c_, step_, "reduce_scatter", Operation::reduce_scatter, size_of(held_),
                                         regions, &c_.kind.reductions, parts == nullptr ? data() : packed.data(),
                                         result.data()));
      piece_.become(std::move(result));
    });
  }

  void all_gather(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const int d = before.dim[std::countr_zero(step.axes)];
    with_parts(step, before, d, shape, [&](const Regions& regions, const Parts* parts) {
      Storage result = allocate(c_, size_of(shape));
      view_.along(step.axes).run(call_of(c_, step_, "all_gather", Operation::all_gather, size_of(shape), regions,
                                         nullptr, data(), result.data()));
      if (parts != nullptr) {
        const Storage packed = std::exchange(result, allocate(c_, size_of(shape)));
        const std::byte* next = packed.data();
        for (const std::vector<Positions>& part : *parts) {
          copy_back(sizes(shape), part, c_.kind.element.size, next, result.data());
          next += picked_size(part) * c_.kind.element.size;
        }
      }
      piece_.become(std::move(result));
    });
  }

  void all_to_all(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const int axis = std::countr_zero(step.axes);
    const int from = before.dim[axis], to = step.after.dim[axis];
    const int first = from < to ? from : to, second = from < to ? to : from;
    const OrderedExchangeBox ordered{
        ExchangeBox(cut_of(c_, before, from, step.axes), cut_of(c_, step.after, to, step.axes), from < to,
                    number(view_.along(step.axes).line->size()), product(held_, 0, first),
                    product(held_, first + 1, second), product(held_, second + 1, dims())),
        order_of_parts(before, from, step.axes, view_, seat_)};
    Storage result = allocate(c_, size_of(shape));
    view_.along(step.axes).run(call_of(c_, step_, "all_to_all", Operation::all_to_all, ordered.box.size(),
                                       Regions{&locate_ordered_exchange, &ordered}, nullptr, data(), result.data()));
    piece_.become(std::move(result));
  }

  void exchange(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    ExtentsOnTheWay from{}, to{};
    for (int d = 0; d < dims(); ++d) {
      from[number(d)] = &c_.extent(before, d);
      to[number(d)] = &c_.extent(step.after, d);
    }
    exchange(step.axes, {&before, from}, {&step.after, to}, shape);
  }
  void exchange(unsigned set, const ExchangeEnd& from, const ExchangeEnd& to, const LocalShape& shape) {
    const auto blocks = blocks_between(view_, set, from, to);
    if (view_.state->checks == Checks::communicating) {
      agree_on_routes(*view_.along(set).line, blocks->routes(), blocks->elements());
    }
    Storage packed;
    if (blocks->packs_input()) {
      packed = allocate(c_, size_of(held_));
      blocks->pack(c_.kind.element.size, data(), packed.data());
    }
    Storage result = allocate(c_, size_of(shape));
    Call call = call_of(c_, step_, "exchange", Operation::exchange, blocks->elements(),
                        Regions{&ExchangeBlocks::locate, blocks.get()}, nullptr,
                        blocks->packs_input() ? packed.data() : data(), result.data());
    call.shape.routes = &blocks->routes();
    view_.along(set).run(call);
    if (blocks->packs_output()) {
      packed = std::exchange(result, allocate(c_, size_of(shape)));
      blocks->unpack(c_.kind.element.size, packed.data(), result.data());
    }
    piece_.become(std::move(result));
  }

  /// Dims that are Counted along one axis before and afterwards keep their counts up to here, and get the new ones now.
  void count_anew() {
    const LayoutValue& layout = c_.kind.plan.to;
    ExtentsOnTheWay from{}, to{};
    LocalShape shape = held_;
    unsigned set = 0;
    for (int d = 0; d < dims(); ++d) {
      from[number(d)] = &c_.extent(layout, d);
      to[number(d)] = is_counted(layout, d) ? &c_.after[d] : from[number(d)];
      if (*from[number(d)] == *to[number(d)]) continue;
      for (int i = 0; i < layout.split[d]; ++i) set |= 1u << layout.order[d][i];
      shape[number(d)].size = range_of(layout, d, layout.split[d], *to[number(d)], seat_).size;
    }
    if (set == 0) return;
    step_ = c_.kind.plan.count;
    exchange(set, {&layout, from}, {&layout, to}, shape);
    held_ = shape;
  }

  /// Where the own part of a layout lies in what another one holds, which is more.
  std::vector<Positions> part_within(const LayoutValue& whole, const LayoutValue& part) const {
    std::vector<Positions> result;
    for (int d = 0; d < whole.dims; ++d) {
      Positions indices;
      const Positions more = positions_of(whole, d, c_.extent(whole, d), seat_);
      for (const CommonPlaces& places : common(more, positions_of(part, d, c_.extent(part, d), seat_))) {
        indices.append({places.a, places.count, places.step_a});
      }
      result.push_back(std::move(indices));
    }
    return result;
  }

  /// How a single axis cuts its dim in runs: where the own part of a layout lies in the whole of the others.
  Region own_region(const PlanStep& step, const LayoutValue& cut, const LocalShape& whole) const {
    const int axis = std::countr_zero(step.axes), d = cut.dim[axis];
    const CutBox box(cut_of(c_, cut, d, step.axes), seat_.parts(axis), product(whole, 0, d),
                     product(whole, d + 1, dims()));
    return box.inside(seat_.part(axis));
  }
  static bool is_one_cut(const PlanStep& step) { return step.dense && (step.axes & (step.axes - 1)) == 0; }

  void slice(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const std::size_t n = size_of(shape);
    std::vector<Positions> part;
    std::optional<Region> region;
    if (is_one_cut(step)) {
      region = own_region(step, step.after, held_);
    } else {
      part = part_within(before, step.after);
      region = region_of(sizes(held_), part);
    }
    // One run is shared instead of copied.
    if (region && (region->repeat <= 1 || n == 0)) {
      if (n != 0) piece_.offset += region->offset;
      return;
    }
    Storage result = allocate(c_, n);
    if (region) {
      copy_out(*region, c_.kind.element.size, data(), result.data());
    } else {
      copy_picked(sizes(held_), part, c_.kind.element.size, data(), result.data());
    }
    piece_.become(std::move(result));
  }

  void keep_first(const PlanStep& step) {
    bool keeps = true;
    for (int a = 0; a < view_.axes; ++a) keeps = keeps && ((step.axes >> a & 1) == 0 || seat_.part(a) == 0);
    if (keeps) return;
    const std::size_t n = size_of(held_);
    Storage result = allocate(c_, n);
    c_.kind.reductions.fill(result.data(), n);
    piece_.become(std::move(result));
  }

  void pad(const PlanStep& step, const LayoutValue& before, const LocalShape& shape) {
    const std::size_t n = size_of(shape);
    Storage result = allocate(c_, n);
    c_.kind.reductions.fill(result.data(), n);
    if (is_one_cut(step)) {
      copy_in(own_region(step, before, shape), c_.kind.element.size, data(), result.data());
    } else {
      copy_back(sizes(shape), part_within(step.after, before), c_.kind.element.size, data(), result.data());
    }
    piece_.become(std::move(result));
  }

  const Conversion& c_;
  const GridView& view_;
  const Seat seat_;
  LocalPiece piece_;
  int step_ = 0;
  LocalShape held_{};
};

}  // namespace meshwise::detail
