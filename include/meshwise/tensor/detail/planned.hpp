// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/layout/plan.hpp"
#include "meshwise/tensor/detail/facts.hpp"
#include "meshwise/tensor/detail/run_plan.hpp"
#include "meshwise/tensor/tensor.hpp"

namespace meshwise::detail {

/// The tensor of the layout L over the same local piece.
template <class L, class E, class D, class From, class S>
Tensor<E, D, L, S> relabelled(const Tensor<E, D, From, S>& x) {
  return Tensor<E, D, L, S>(x.mesh(), x.extents(), x.storage(), x.offset());
}

template <class T>
std::size_t elements_before(const T& x, std::size_t dim) {
  std::size_t n = 1;
  for (std::size_t i = 0; i < dim; ++i) n *= x.ranges()[i].size;
  return n;
}
template <class T>
std::size_t elements_after(const T& x, std::size_t dim) {
  std::size_t n = 1;
  for (std::size_t i = dim + 1; i < T::rank; ++i) n *= x.ranges()[i].size;
  return n;
}

template <class D, class T>
inline constexpr std::size_t dim_index = static_cast<std::size_t>(index_of<D, dims_of<typename T::dims>>);

template <class E, class Op>
Reduce kernel_of() {
  return meshwise::reduce_kernel<E, Op>();
}
template <class E, class Op>
void fill_identity(std::byte* out, std::size_t n) {
  fill(reinterpret_cast<E*>(out), n, static_cast<E>(Op::template identity<E>()));
}

/// The reduction that a layout owes, or void.
template <class P>
struct reduction_named {
  using is = list<>;
};
template <class A, class Op>
struct reduction_named<Partial<A, Op>> {
  using is = list<Op>;
};
template <class... Ps>
consteval auto reductions_named(list<Ps...>) {
  return first_of(joined<typename reduction_named<Ps>::is..., list<void>>());
}
template <class L>
using owed_reduction = typename decltype(reductions_named(placements_of<L>{}))::is;

constexpr bool has_step(const LayoutPlan& steps, Transition one, Transition other) {
  for (const PlanStep& step : steps) {
    if (step.what == one || step.what == other) return true;
  }
  return false;
}
template <class Ds>
std::vector<std::string> names_of_dims() {
  return names_of_types(Ds{});
}
template <class E, class Owed, class Owing, class Ds>
consteval ConversionKind conversion_kind(const LayoutPlan& steps) {
  ConversionKind kind{steps};
  kind.element = {element_kind<E>, sizeof(E)};
  kind.signature = hash_of(hash_of(0, steps.from), steps.to);
  kind.counted = is_counted(steps.from) || is_counted(steps.to);
  kind.dims = &names_of_dims<Ds>;
  if constexpr (!std::is_void_v<Owed>) {
    kind.reductions.kind = Owed::kind;
    kind.reductions.commutative = Owed::commutative;
    kind.reductions.kernel = &kernel_of<E, Owed>;
  }
  if constexpr (!std::is_void_v<Owing>) kind.reductions.fill = &fill_identity<E, Owing>;
  return kind;
}

/// The reduction that a plan carries out, and the one that it leaves owed; void if there is none.
template <const LayoutPlan& steps, class From>
using carried_out =
    std::conditional_t<has_step(steps, Transition::all_reduce, Transition::reduce_scatter), owed_reduction<From>, void>;
template <const LayoutPlan& steps, class To>
using left_owed =
    std::conditional_t<has_step(steps, Transition::keep_first, Transition::pad), owed_reduction<To>, void>;

template <class E, class From, class To, class Ds>
inline constexpr ConversionKind kind_of_conversion =
    conversion_kind<E, carried_out<plan<From, To, Ds>, From>, left_owed<plan<From, To, Ds>, To>, Ds>(
        plan<From, To, Ds>);

/// Whether a dim is Counted in one layout by another axis than in another one, or not at all there.
constexpr bool needs_counts(const LayoutValue& from, const LayoutValue& to, int d) {
  return is_counted(to, d) && !counted_alike(from, to, d);
}

/// Checks the extents of a result before anything is sent.
inline void check_extents(const char* verb, const GridView& view, const LayoutValue& layout, const Extent* before,
                          const Extent* after) {
  for (int d = 0; d < layout.dims; ++d) {
    if (is_counted(layout, d)) {
      const int axis = layout.order[d][0];
      if (after[d].counts().size() != static_cast<std::size_t>(view.size(axis))) {
        refuse_counts(verb, view, axis, after[d]);
      }
    }
    if (after[d].size() == before[d].size()) continue;
    fail(verb, std::to_string(before[d].size()) + " indices in all, the extent of the dim",
         std::to_string(after[d].size()), "counts add up to the whole dim: a conversion changes no extent",
         view.state->world->rank());
  }
}

/// What the ranks of a mesh that is checked `communicating` do before a conversion.
[[gnu::noinline, gnu::cold]] inline void check_across_ranks(const char* verb, const Conversion& c) {
  std::string problem;
  try {
    check_extents(verb, c.view, c.kind.plan.to, c.before, c.after);
  } catch (const Error& error) {
    problem = error.what();
  }
  agree_on(verb, c, std::move(problem));
}

/// Carries out the plan from a tensor's layout to To. x: an rvalue is used up. after: the extents of the result, with
/// the counts of dims that are Counted in To. given: by the caller, so that they may be anything.
template <class To, bool given = true, class T>
auto planned(const char* verb, T&& x, const Extents<typename std::remove_cvref_t<T>::dims>& after) {
  using X = std::remove_cvref_t<T>;
  using Result = Tensor<typename X::element, typename X::dims, To, typename X::space>;
  constexpr bool ours = !std::is_reference_v<T> && !std::is_const_v<T>;
  constexpr const ConversionKind& kind =
      kind_of_conversion<typename X::element, typename X::layout, To, typename X::dims>;
  const GridView& view = x.mesh().view();
  const Conversion conversion{kind, view, x.extents().data(), after.data()};
  if constexpr (kind.plan.communicates() || kind.counted) {
    if (view.state->checks == Checks::communicating) check_across_ranks(verb, conversion);
  }
  if constexpr (kind.counted || given) {
    check_extents(verb, view, kind.plan.to, conversion.before, conversion.after);
  }
  std::size_t offset = x.offset();
  Storage storage = [&] {
    if constexpr (ours) {
      return x.take_storage();
    } else {
      return x.storage();
    }
  }();
  LocalPiece piece{storage, offset, ours};
  if constexpr (kind.plan.count == 1 && !kind.counted && is_dense_collective(kind.plan.steps[0])) {
    if (view.size(std::countr_zero(kind.plan.steps[0].axes)) > 1) {
      if (storage.data() == nullptr) refuse_moved_from(view);
      run_dense(conversion, kind.plan.steps[0], kind.plan.from, 0, x.ranges().data(), piece);
    }
  } else if constexpr (kind.plan.count != 0 || kind.counted) {
    PlanRunner(conversion, x.ranges().data(), piece).run();
  }
  return Result(x.mesh(), after, std::move(storage), offset);
}
template <class To, class T>
auto planned(const char* verb, T&& x) {
  using X = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<To, typename X::layout>) {
    return X(std::forward<T>(x));
  } else {
    return planned<To, false>(verb, std::forward<T>(x), x.extents());
  }
}

}  // namespace meshwise::detail
