// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "meshwise/core/reduce.hpp"
#include "meshwise/layout/transition.hpp"
#include "meshwise/tensor/detail/blocks.hpp"
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

/// How axis A cuts dim D at its minor end in layout L, which places A there.
template <class D, class A, class L, class Grid>
Cut cut_of(const Grid& mesh, std::size_t extent) {
  const Part part = part_of(mesh, shard_axes<L, D>{});
  const auto n = static_cast<std::size_t>(mesh.template size<A>());
  return {extent, part.parts, part.index / n * n};
}

/// The box of a tensor seen as whole along D, cut by axis A as layout L says; x is any piece with the other dims.
template <class D, class A, class L, class T>
CutBox box_of(const T& x) {
  constexpr std::size_t d = dim_index<D, T>;
  return {cut_of<D, A, L>(x.mesh(), x.extents()[d]), static_cast<std::size_t>(x.mesh().template size<A>()),
          elements_before(x, d), elements_after(x, d)};
}

template <class T>
std::uint64_t signature(const T& x, std::uint64_t seed) {
  for (std::size_t e : x.extents()) seed = mix(seed, e);
  return mix(seed, T::rank);
}

/// What combines the contributions to a collective; nothing for one that only copies.
struct StepKernel {
  ReductionKind kind = ReductionKind::none;
  Reduce kernel = nullptr;
};
template <class E, class Op>
StepKernel step_kernel() {
  return {reduction_kind<Op>, meshwise::reduce_kernel<E, Op>()};
}

/// The call of a collective between two tensors; x and y may be the same piece where the operation allows it.
template <class X, class Y>
Call call_between(const char* verb, Operation operation, const X& x, Y& y, const Regions& regions, std::uint64_t count,
                  std::uint64_t seed, StepKernel how) {
  using E = typename X::element;
  Call call;
  call.verb = verb;
  call.shape.operation = operation;
  call.element = element_kind<E>;
  call.element_size = sizeof(E);
  call.reduction = how.kind;
  call.kernel = how.kernel;
  call.count = count;
  call.signature = signature(x, seed);
  call.regions = regions;
  const E* const input = x.local().data();
  E* const output = const_cast<E*>(y.local().data());  // y is new, or x itself and unique
  call.shape.in_place = input == output && input != nullptr;
  call.input = input;
  call.output = output;
  return call;
}

/// Performs it along one axis.
template <class A, class X, class Y>
void run_between(const char* verb, Operation operation, const X& x, Y& y, const Regions& regions, std::uint64_t count,
                 std::uint64_t seed, StepKernel how = {}) {
  x.mesh().template along<A>().run(call_between(verb, operation, x, y, regions, count, seed, how));
}

/// Carries out one accepted step of one axis: P places axis A anew. ours: x is used up, and an all_reduce may be done
/// in place. All ranks must do the same, so that the program decides it and not who shares storage on which rank.
template <class P, bool ours, class T>
auto step(T& x) {
  using E = typename T::element;
  using L = typename T::layout;
  using A = front<axes_of<P>>;
  using From = placement_on<L, A>;
  using NewLayout = typename layout_after<L, P>::is;
  using Result = Tensor<E, typename T::dims, NewLayout, typename T::space>;
  constexpr Transition kind = transition<L, P>();
  const auto& mesh = x.mesh();

  if constexpr (kind == Transition::equal && ours) {
    return T(std::move(x));
  } else if constexpr (kind == Transition::equal) {
    return std::remove_const_t<T>(x);
  } else {
    // In a group of one every placement describes the same piece.
    if (mesh.template size<A>() == 1) return relabelled<NewLayout>(x);
    const auto me = static_cast<std::size_t>(mesh.template coordinate<A>());

    if constexpr (kind == Transition::all_reduce) {
      const StepKernel how = step_kernel<E, typename placement_traits<From>::op>();
      const FlatBox box{x.local().size()};
      const Regions regions{&locate_flat, &box, 0, true};
      if constexpr (ours) {
        x.mutable_local();
        run_between<A>("all_reduce", Operation::all_reduce, x, x, regions, box.count, 1, how);
        return relabelled<NewLayout>(x);
      } else {
        Result y(mesh, x.extents(), uninitialised{});
        run_between<A>("all_reduce", Operation::all_reduce, x, y, regions, box.count, 1, how);
        return y;
      }
    } else if constexpr (kind == Transition::reduce_scatter) {
      using To = typename placement_traits<P>::dim;
      const StepKernel how = step_kernel<E, typename placement_traits<From>::op>();
      const CutBox box = box_of<To, A, NewLayout>(x);
      Result y(mesh, x.extents(), uninitialised{});
      run_between<A>("reduce_scatter", Operation::reduce_scatter, x, y, {&locate_cut, &box}, x.local().size(),
                     2 + dim_index<To, Result>, how);
      return y;
    } else if constexpr (kind == Transition::all_gather) {
      using Of = typename placement_traits<From>::dim;
      const CutBox box = box_of<Of, A, L>(x);
      Result y(mesh, x.extents(), uninitialised{});
      run_between<A>("all_gather", Operation::all_gather, x, y, {&locate_cut, &box}, y.local().size(),
                     20 + dim_index<Of, Result>);
      return y;
    } else if constexpr (kind == Transition::all_to_all) {
      using Of = typename placement_traits<From>::dim;
      using To = typename placement_traits<P>::dim;
      constexpr std::size_t d = dim_index<Of, Result>, e = dim_index<To, Result>;
      constexpr std::size_t first = std::min(d, e), second = std::max(d, e);
      std::size_t between = 1;
      for (std::size_t i = first + 1; i < second; ++i) between *= x.ranges()[i].size;
      const ExchangeBox box(cut_of<Of, A, L>(mesh, x.extents()[d]), cut_of<To, A, NewLayout>(mesh, x.extents()[e]),
                            d < e, static_cast<std::size_t>(mesh.template size<A>()), elements_before(x, first),
                            between, elements_after(x, second));
      Result y(mesh, x.extents(), uninitialised{});
      run_between<A>("all_to_all", Operation::all_to_all, x, y, {&locate_exchange, &box}, box.size(), 40 + 10 * d + e);
      return y;
    } else if constexpr (kind == Transition::slice) {
      using To = typename placement_traits<P>::dim;
      const CutBox box = box_of<To, A, NewLayout>(x);
      // Along the outermost dim a part is contiguous: share it instead of copying.
      if (box.outer == 1) return Result(mesh, x.extents(), x.storage(), x.offset() + box.inside(me).offset);
      Result y(mesh, x.extents(), uninitialised{});
      copy_out(box.inside(me), sizeof(E), reinterpret_cast<const std::byte*>(x.local().data()),
               reinterpret_cast<std::byte*>(y.mutable_local().data()));
      return y;
    } else {
      using Op = typename placement_traits<P>::op;
      const E identity = static_cast<E>(Op::template identity<E>());
      if constexpr (kind == Transition::keep_first) {
        if (me == 0) return relabelled<NewLayout>(x);
        Result y(mesh, x.extents(), uninitialised{});
        std::fill(y.mutable_local().begin(), y.mutable_local().end(), identity);
        return y;
      } else {
        using Of = typename placement_traits<From>::dim;
        const CutBox box = box_of<Of, A, L>(x);
        Result y(mesh, x.extents(), uninitialised{});
        std::fill(y.mutable_local().begin(), y.mutable_local().end(), identity);
        copy_in(box.inside(me), sizeof(E), reinterpret_cast<const std::byte*>(x.local().data()),
                reinterpret_cast<std::byte*>(y.mutable_local().data()));
        return y;
      }
    }
  }
}

/// Carries out steps in order. ours: x is used up, and gone before the second step; what a step makes is ours.
template <bool ours, class T>
std::remove_cvref_t<T> steps(T&& x, list<>) {
  return std::forward<T>(x);
}
template <bool ours, class T, class P>
auto steps(T&& x, list<P>) {
  return step<P, ours>(x);
}
template <bool ours, class T, class P, class Next, class... Rest>
auto steps(T&& x, list<P, Next, Rest...>) {
  auto y = step<P, ours>(x);
  if constexpr (ours) static_cast<void>(T(std::move(x)));
  return steps<true>(std::move(y), list<Next, Rest...>{});
}

/// Carries out a list of steps on an operand: an rvalue is used up.
template <class Steps, class T>
auto converted(T&& x) {
  if constexpr (std::is_lvalue_reference_v<T>) {
    return steps<false>(std::as_const(x), Steps{});
  } else {
    return steps<true>(std::remove_cv_t<T>(std::move(x)), Steps{});
  }
}

}  // namespace meshwise::detail
