// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/tensor/detail/blocks.hpp"
#include "meshwise/tensor/detail/boxes.hpp"
#include "meshwise/tensor/detail/exchange_blocks.hpp"
#include "meshwise/tensor/detail/facts.hpp"
#include "meshwise/tensor/detail/local_steps.hpp"

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

/// The steps of a plan in which ranks hear from each other.
class CollectiveSteps : protected LocalSteps {
 protected:
  using LocalSteps::LocalSteps;

  void reduce_scatter(const PlanStep& step, const LocalShape& shape) {
    const int d = step.after.dim[std::countr_zero(step.axes)];
    with_parts(step, step.after, d, held_, [&](const Regions& regions, const Parts* parts) {
      Storage packed;
      if (parts != nullptr) {
        packed = allocate(c_, size_of(held_));
        std::byte* next = packed.data();
        for (const List<Positions>& part : *parts) {
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
        for (const List<Positions>& part : *parts) {
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
    const ExchangeBlocks& blocks = blocks_between(view_, set, from, to);
    if (view_.state->checks == Checks::communicating) {
      agree_on_routes(*view_.along(set).line, blocks.routes(), blocks.elements());
    }
    Storage packed;
    if (blocks.packs_input()) {
      packed = allocate(c_, size_of(held_));
      blocks.pack(c_.kind.element.size, data(), packed.data());
    }
    Storage result = allocate(c_, size_of(shape));
    Call call = call_of(c_, step_, "exchange", Operation::exchange, blocks.elements(),
                        Regions{&ExchangeBlocks::locate, &blocks}, nullptr,
                        blocks.packs_input() ? packed.data() : data(), result.data());
    call.shape.routes = &blocks.routes();
    view_.along(set).run(call);
    if (blocks.packs_output()) {
      packed = std::exchange(result, allocate(c_, size_of(shape)));
      blocks.unpack(c_.kind.element.size, packed.data(), result.data());
    }
    piece_.become(std::move(result));
  }

 private:
  using Parts = List<List<Positions>>;

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
      List<Positions> indices;
      for (int e = 0; e < cut.dims; ++e) indices.push_back(Range{0, whole[number(e)].size});
      indices[number(d)] =
          part_by(cut.rule[axis], indices[number(d)], seat_.parts(axis), k, c_.extent(cut, d).counts());
      const MaybeRegion region = region_of(sizes(whole), indices);
      packed = packed || !region;
      parts.parts.push_back(*region);
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
};

}  // namespace meshwise::detail
