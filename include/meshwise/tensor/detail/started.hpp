// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "meshwise/collective/pending.hpp"
#include "meshwise/core/detail/shared.hpp"
#include "meshwise/tensor/detail/planned.hpp"

namespace meshwise::detail {

/// Whether a conversion is at most one collective whose blocks are runs of what the ranks hold: only such a one can be
/// in flight, because nothing has to be done when it lands.
constexpr bool is_startable(const LayoutPlan& steps) {
  if (!steps.communicates()) return true;
  const PlanStep& step = steps.steps[0];
  if (steps.count != 1) return false;
  if (step.what == Transition::all_reduce) return true;
  return step.dense && step.what != Transition::exchange &&
         (step.what != Transition::all_to_all || std::has_single_bit(step.axes));
}

/// A conversion in flight: what it reads and writes, and the formula that says where its blocks lie.
class ConversionTask : public RequestTask {
 public:
  using RequestTask::RequestTask;

  Storage input;  ///< kept until the task dies
  Storage result;
  std::size_t offset = 0;

  /// Keeps a box and lets the call refer to it.
  template <class Box>
  void take(const Call& call, const Box& box) {
    static_assert(std::is_trivially_copyable_v<Box> && sizeof(Box) <= sizeof room_);
    const int ranks = request.size();
    request.call = call;
    request.call.shape.ranks = ranks;
    request.call.regions.context = ::new (static_cast<void*>(room_)) Box(box);
  }

 private:
  alignas(std::max_align_t) std::byte room_[512];
};

/// The same with the type of its result.
template <class T>
class TensorTask final : public ConversionTask {
 public:
  TensorTask(Endpoint& endpoint, const char* verb, const typename T::grid& mesh, const Extents<typename T::dims>& to)
      : ConversionTask(endpoint, verb), mesh_(mesh.borrowed()), extents_(to) {}

  static T take_result(Task& task) {
    TensorTask& self = static_cast<TensorTask&>(task);
    return T(self.mesh_, self.extents_, std::move(self.result), self.offset);
  }

 private:
  typename T::grid mesh_;
  Extents<typename T::dims> extents_;
};

/// Starts the call of a step instead of performing it.
template <class Task>
struct PerformLater {
  Task& task;

  template <class MakeCall, class Box>
  void operator()(MeshGroup&, const MakeCall& call, const Box& box, const LocalPiece& x) const {
    task.input = x.storage;
    task.take(call(), box);
  }
};

/// The ranks that a conversion along some axes is started with, or null if there is nothing to wait for.
inline MeshGroup* group_to_start(const GridView& view, const LayoutPlan& steps) {
  if (!steps.communicates()) return nullptr;
  const unsigned axes = steps.steps[0].axes;
  return wide_axes_where(view, [axes](int a) { return (axes >> a & 1U) != 0; }) == 0 ? nullptr : &view.along(axes);
}

/// Describes the one collective of a conversion to a task. held: what this rank holds of each dim before. Always of a
/// ConversionTask; a template so that programs that start nothing do not compile it.
template <class Task>
void describe_start(const Conversion& c, const Range* held, LocalPiece& x, Task& task) {
  const PlanStep& step = c.kind.plan.steps[0];
  const LayoutValue& from = c.kind.plan.from;
  MeshGroup& group = c.view.along(step.axes);
  const PerformLater<Task> perform{task};
  if (x.storage.data() == nullptr) refuse_moved_from(c.view);
  if (is_dense_collective(step)) return run_dense(c, step, from, 0, held, x, perform);

  const auto elements = [held](int first, int last) {
    std::size_t n = 1;
    for (const Range* r = held + first; r < held + last; ++r) n *= r->size;
    return n;
  };
  if (step.what == Transition::all_reduce) return run_all_reduce(c, group, 0, elements(0, from.dims), x, perform);
  const bool gathers = step.what == Transition::all_gather;
  const LayoutValue& cut = gathers ? from : step.after;
  const int d = cut.dim[std::countr_zero(step.axes)];
  const Seat seat(c.view);
  const OrderedCutBox ordered{CutBox(cut_of(c, cut, d, step.axes), static_cast<std::size_t>(group.line->size()),
                                     elements(0, d), elements(d + 1, from.dims)),
                              order_of_parts(cut, d, step.axes, c.view, seat)};
  const std::size_t whole = ordered.box.outer * ordered.box.length * ordered.box.inner;
  const std::size_t after =
      gathers ? whole : ordered.box.outer * local_size(c, step.after, d, seat) * ordered.box.inner;
  Storage result = allocate(c, after);
  const auto call = [&] {
    return call_of(c, 0, gathers ? "all_gather" : "reduce_scatter",
                   gathers ? Operation::all_gather : Operation::reduce_scatter, whole,
                   Regions{&locate_ordered_cut, &ordered}, gathers ? nullptr : &c.kind.reductions, x.data(c),
                   result.data());
  };
  perform(group, call, ordered, x);
  x.become(std::move(result));
}

/// Starts the conversion of a tensor to the layout To. x: an rvalue is used up.
template <class To, class T>
auto start_planned(const char* verb, T&& x) {
  using X = std::remove_cvref_t<T>;
  using Result = Tensor<typename X::element, typename X::dims, To, typename X::space>;
  constexpr bool ours = !std::is_reference_v<T> && !std::is_const_v<T>;
  constexpr const ConversionKind& kind =
      kind_of_conversion<typename X::element, typename X::layout, To, typename X::dims>;
  static_assert(is_startable(kind.plan));
  const GridView& view = x.mesh().view();
  MeshGroup* const group = group_to_start(view, kind.plan);
  Endpoint& endpoint = (group == nullptr ? *view.state->world : group->line_for_started()).endpoint(verb);
  Shared<TensorTask<Result>> task(new TensorTask<Result>(endpoint, verb, x.mesh(), x.extents()));
  if (group == nullptr) {
    Result result = planned<To>(verb, std::forward<T>(x));
    task->offset = result.offset();
    task->result = result.take_storage();
  } else {
    const Conversion conversion{kind, view, x.extents().data(), x.extents().data()};
    if (view.state->checks == Checks::communicating) check_across_ranks(verb, conversion);
    const auto held = x.ranges();
    task->offset = x.offset();
    if constexpr (ours) {
      task->result = x.take_storage();
    } else {
      task->result = x.storage();
    }
    LocalPiece piece{task->result, task->offset, ours};
    describe_start<ConversionTask>(conversion, held.data(), piece, *task);
    task->start();
  }
  return Pending<Result>(std::move(task), &TensorTask<Result>::take_result);
}

}  // namespace meshwise::detail
