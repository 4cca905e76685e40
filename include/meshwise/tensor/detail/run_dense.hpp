// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "meshwise/core/error.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/tensor/detail/conversion.hpp"

namespace meshwise::detail {

/// A local piece on its way through the steps of a conversion.
struct LocalPiece {
  Storage& storage;
  std::size_t& offset;  ///< in elements
  /// Whether the storage is used up, so that an all_reduce may be done in place. All ranks say the same: the program
  /// decides it, and not who shares storage on which rank.
  bool ours;

  const std::byte* data(const Conversion& c) const { return storage.data() + offset * c.kind.element.size; }
  /// Goes over to what a step has made.
  void become(Storage result) {
    storage = std::move(result);
    offset = 0;
    ours = true;
  }
};

inline Storage allocate(const Conversion& c, std::size_t elements) {
  return c.view.state->heap.allocate(elements * c.kind.element.size);
}

/// The call of a step. how: what combines, or null.
inline Call call_of(const Conversion& c, int step, const char* verb, Operation operation, std::size_t count,
                    const Regions& regions, const Reductions* how, const std::byte* input, std::byte* output) {
  Call call;
  call.verb = verb;
  call.shape.operation = operation;
  call.shape.in_place = input == output;
  call.element = c.kind.element.kind;
  call.element_size = c.kind.element.size;
  call.count = count;
  call.signature = signature_of(c, static_cast<std::uint64_t>(step));
  call.regions = regions;
  call.input = input;
  call.output = output;
  if (how != nullptr) {
    call.reduction = how->kind;
    call.commutative = how->commutative;
    call.kernel = how->kernel();
  }
  return call;
}

/// How the call of a step along one axis is performed: at once. Another way is to start it (see started.hpp): then the
/// piece that is read and the box, which says where the blocks lie, have to be kept. call: makes it, so that it is not
/// copied.
struct PerformNow {
  template <class MakeCall, class Box>
  void operator()(MeshGroup& group, const MakeCall& call, const Box&, const LocalPiece&) const {
    group.own.run(call());
  }
};

/// The same along several axes, whose group may be the world.
struct PerformInGroup {
  template <class MakeCall, class Box>
  void operator()(MeshGroup& group, const MakeCall& call, const Box&, const LocalPiece&) const {
    group.run(call());
  }
};

// All axes of the set at once: in groups one after the other replicas could differ in the last bit.
template <class Perform>
void run_all_reduce(const Conversion& c, MeshGroup& group, int step, std::size_t n, LocalPiece& x,
                    const Perform& perform) {
  if (x.ours && !x.storage.unique()) {
    Storage copy = allocate(c, n);
    if (copy.backed()) std::memcpy(copy.data(), x.data(c), n * c.kind.element.size);
    x.become(std::move(copy));
  }
  const FlatBox box{n};
  const Regions regions{&locate_flat, &box, 0, true};
  const std::byte* const input = x.data(c);
  Storage result;
  if (!x.ours) result = allocate(c, n);
  std::byte* const output = x.ours ? const_cast<std::byte*>(input) : result.data();
  const auto call = [&] {
    return call_of(c, step, "all_reduce", Operation::all_reduce, n, regions, &c.kind.reductions, input, output);
  };
  perform(group, call, box, x);
  if (!x.ours) x.become(std::move(result));
}

/// Whether a step is one of those that `run_dense` performs.
constexpr bool is_dense_collective(const PlanStep& step) {
  return step.dense && (step.axes & (step.axes - 1)) == 0 && communicates(step.what) &&
         step.what != Transition::exchange;
}

/// Performs a collective along one axis, which cuts contiguously; its blocks are moved where they lie. held: what this
/// rank holds of each dim before.
template <class Perform>
void run_dense(const Conversion& c, const PlanStep& step, const LayoutValue& before, int number, const Range* held,
               LocalPiece& x, const Perform& perform) {
  const int axis = std::countr_zero(step.axes);
  MeshAxis& along = c.view.axis(axis);
  const auto me = static_cast<std::size_t>(along.coordinate);
  const auto ranks = static_cast<std::size_t>(along.size);
  const int dims = before.dims;
  const auto elements = [held](int first, int last) {
    std::size_t n = 1;
    for (const Range* r = held + first; r < held + last; ++r) n *= r->size;
    return n;
  };
  MeshGroup& group = along.group;
  const std::byte* const in = x.data(c);
  // Calls take where it lies, not the object, so that compilers see when it has been given away.
  Storage result;
  switch (step.what) {
    case Transition::all_reduce: run_all_reduce(c, group, number, elements(0, dims), x, perform); return;
    case Transition::reduce_scatter: {
      const int d = step.after.dim[axis];
      const CutBox box(cut_of(c, step.after, d, step.axes), ranks, elements(0, d), elements(d + 1, dims));
      result = allocate(c, box.outer * box.cut.size(me) * box.inner);
      std::byte* const out = result.data();
      const auto call = [&] {
        return call_of(c, number, "reduce_scatter", Operation::reduce_scatter, box.outer * box.length * box.inner,
                       Regions{&locate_cut, &box}, &c.kind.reductions, in, out);
      };
      perform(group, call, box, x);
      break;
    }
    case Transition::all_gather: {
      const int d = before.dim[axis];
      const CutBox box(cut_of(c, before, d, step.axes), ranks, elements(0, d), elements(d + 1, dims));
      const std::size_t n = box.outer * box.length * box.inner;
      result = allocate(c, n);
      std::byte* const out = result.data();
      const auto call = [&] {
        return call_of(c, number, "all_gather", Operation::all_gather, n, Regions{&locate_cut, &box}, nullptr, in, out);
      };
      perform(group, call, box, x);
      break;
    }
    default: {
      const int from = before.dim[axis], to = step.after.dim[axis];
      const int first = from < to ? from : to, second = from < to ? to : from;
      const ExchangeBox box(cut_of(c, before, from, step.axes), cut_of(c, step.after, to, step.axes), from < to, ranks,
                            elements(0, first), elements(first + 1, second), elements(second + 1, dims));
      result = allocate(c, box.outer * box.from_length * box.between * box.to.size(me) * box.inner);
      std::byte* const out = result.data();
      const auto call = [&] {
        return call_of(c, number, "all_to_all", Operation::all_to_all, box.size(), Regions{&locate_exchange, &box},
                       nullptr, in, out);
      };
      perform(group, call, box, x);
    }
  }
  x.become(std::move(result));
}
inline void run_dense(const Conversion& c, const PlanStep& step, const LayoutValue& before, int number,
                      const Range* held, LocalPiece& x) {
  run_dense(c, step, before, number, held, x, PerformNow{});
}

}  // namespace meshwise::detail
