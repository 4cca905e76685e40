// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "meshwise/core/split.hpp"
#include "meshwise/tensor/detail/verdicts.hpp"
#include "meshwise/tensor/detail/walk.hpp"

namespace meshwise {

namespace detail {

/// The verdict on taking indices of D out of T: a tensor with the dims `Kept`.
template <class T, class D, class Kept>
consteval auto take_verdict() {
  if constexpr (!contains<D, dims_of<typename T::dims>>) {
    return type<foreign_dim<D, typename T::dims>>{};
  } else {
    return type<typename decltype(first_refusal<
                                  Tensor<typename T::element, dims_from<Kept>, typename T::layout, typename T::space>,
                                  whole_dim<D, typename T::layout>>())::is>{};
  }
}
template <AnyTensor T, class D>
using take_some_of = typename decltype(take_verdict<T, D, dims_of<typename T::dims>>())::is;
template <AnyTensor T, class D>
using take_one_of = typename decltype(take_verdict<T, D, without<D, dims_of<typename T::dims>>>())::is;

/// The verdict on putting a gradient of what was taken out of X back to where that was.
template <class X, class D, class Taken, class G>
consteval auto take_backward_verdict() {
  if constexpr (!is_accepted<Taken>) {
    return type<Taken>{};
  } else if constexpr (!std::is_same_v<typename Taken::is::dims, typename G::dims>) {
    return type<refused<because::dims_differ, try_<give_the_gradient_the_dims_of_the_value>, typename Taken::is::dims,
                        typename G::dims>>{};
  } else if constexpr (!std::is_same_v<typename X::grid, typename G::grid>) {
    return type<
        refused<because::meshes_differ, try_<bring_both_to_one_mesh>, typename X::layout, typename G::layout>>{};
  } else {
    using result = Tensor<typename G::element, typename X::dims, typename G::layout, typename G::space>;
    return first_refusal<result, whole_dim<D, typename G::layout>>();
  }
}
template <AnyTensor X, class D, class Taken, AnyTensor G>
using take_backward_of = typename decltype(take_backward_verdict<X, D, Taken, G>())::is;

/// Where indices of a dim lie in a dense array: of the array that `outside`, `inside` elements surround.
inline Region region_taken(std::size_t outside, std::size_t extent, std::size_t inside, const Range& indices) {
  return {indices.begin * inside, indices.size * inside, extent * inside, outside};
}

inline void check_range(const char* verb, const std::string& dim, const Range& range, std::size_t extent, int rank) {
  if (range.size <= extent && range.begin <= extent - range.size) return;
  fail(verb, "indices of " + dim + " below its extent " + std::to_string(extent),
       std::to_string(range.size) + " from " + std::to_string(range.begin) + " on", "pass Range{begin, size}", rank);
}

template <class Result, class D, class T>
Result taken(const T& x, const Range& range, const Extents<typename Result::dims>& extents) {
  constexpr std::size_t d = dim_index<D, T>;
  check_range("take", name_of<D>(), range, x.extents()[d], x.mesh().world().rank());
  const Region region = region_taken(elements_before(x, d), x.extents()[d], elements_after(x, d), range);
  if (region.repeat <= 1 || region.run == 0 || region.run == region.stride) {
    return Result(x.mesh(), extents, x.storage(), x.offset() + (region.size() == 0 ? 0 : region.offset));
  }
  Result result(x.mesh(), extents, uninitialised{});
  copy_out(region, sizeof(typename T::element), reinterpret_cast<const std::byte*>(x.local().data()),
           reinterpret_cast<std::byte*>(written(result)));
  return result;
}

template <class Result, class D, class X, class G>
Result put_back(const X& x, const Range& range, const G& dy) {
  constexpr std::size_t d = dim_index<D, X>;
  check_range("take_backward", name_of<D>(), range, x.extents()[d], x.mesh().world().rank());
  check_operands<D>("take_backward", x, dy);
  if constexpr (contains<D, dims_of<typename G::dims>>) {
    const std::size_t found = dy.extents()[dim_index<D, G>];
    if (found != range.size) {
      fail("take_backward", std::to_string(range.size) + " indices of " + name_of<D>() + ", as many as were taken",
           std::to_string(found), "pass the gradient of what take gave for these indices", x.mesh().world().rank());
    }
  }
  // What cuts dy by counts need not cut x.
  Extents<typename X::dims> extents = extents_of_both<typename X::dims>(dy, x);
  extents[d] = x.extents()[d];
  Result result(dy.mesh(), extents);
  const Region region = region_taken(elements_before(result, d), x.extents()[d], elements_after(result, d), range);
  copy_in(region, sizeof(typename G::element), reinterpret_cast<const std::byte*>(dy.local().data()),
          reinterpret_cast<std::byte*>(written(result)));
  return result;
}

}  // namespace detail

/// Some indices of a dim that every rank has whole: `take<seq>(x, Range{2, 3})`, or the parts of a fused weight,
/// `rename<qkv, heads>(take<qkv>(w, Range{0, query_heads}))`, each of which is then sharded by itself.
///
/// x: any layout in which no axis cuts D; a Partial stays one. indices: global, within the extent. Result: the same
/// dims and layout, D with that many indices. Cost: no communication; none at all where the elements lie together (D is
/// the first dim, or those before it have one index here): storage is shared. Else one copy of what is taken.
/// Errors: indices outside of the dim; refused where D is cut: its ranks would get parts of other sizes than the split
/// rule gives, so convert it, or keep a dim for the parts: Dims<part, heads> with heads sharded.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::take_some_of<detail::bare<T>, D>>
[[nodiscard]] auto take(const T& x, const Range& indices) {
  Extents<typename T::dims> extents = x.extents();
  extents[detail::dim_index<D, T>] = indices.size;
  return detail::taken<typename detail::take_some_of<T, D>::is, D>(x, indices, extents);
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::take_some_of<detail::bare<T>, D>>)
[[nodiscard]] auto take(const T& x, const Range& indices) -> detail::take_some_of<detail::bare<T>, D>;

/// One index of it: the result lacks the dim.
template <Dim D, AnyTensor T>
  requires detail::is_accepted<detail::take_one_of<detail::bare<T>, D>>
[[nodiscard]] auto take(const T& x, std::size_t index) {
  using Result = typename detail::take_one_of<T, D>::is;
  return detail::taken<Result, D>(x, Range{index, 1}, detail::extents_from<typename Result::dims>(x));
}
template <Dim D, AnyTensor T>
  requires(!detail::is_accepted<detail::take_one_of<detail::bare<T>, D>>)
[[nodiscard]] auto take(const T& x, std::size_t index) -> detail::take_one_of<detail::bare<T>, D>;

/// The gradient with respect to x of what `take<D>(x, indices)` gave: dy where that was, and zeros.
///
/// dy: the gradient of what was taken, in a layout that does not cut D either. x: for its extents only. Result: the
/// dims of x, the layout of dy. Cost: one allocation, local. Errors: as take; another size than was taken.
template <Dim D, AnyTensor X, AnyTensor G>
  requires detail::is_accepted<detail::take_backward_of<X, D, detail::take_some_of<X, D>, G>>
[[nodiscard]] auto take_backward(const G& dy, const X& x, const Range& indices) {
  return detail::put_back<typename detail::take_backward_of<X, D, detail::take_some_of<X, D>, G>::is, D>(x, indices,
                                                                                                         dy);
}
template <Dim D, AnyTensor X, AnyTensor G>
  requires(!detail::is_accepted<detail::take_backward_of<X, D, detail::take_some_of<X, D>, G>>)
[[nodiscard]] auto take_backward(const G& dy, const X& x, const Range& indices)
    -> detail::take_backward_of<X, D, detail::take_some_of<X, D>, G>;
template <Dim D, AnyTensor X, AnyTensor G>
  requires detail::is_accepted<detail::take_backward_of<X, D, detail::take_one_of<X, D>, G>>
[[nodiscard]] auto take_backward(const G& dy, const X& x, std::size_t index) {
  return detail::put_back<typename detail::take_backward_of<X, D, detail::take_one_of<X, D>, G>::is, D>(
      x, Range{index, 1}, dy);
}
template <Dim D, AnyTensor X, AnyTensor G>
  requires(!detail::is_accepted<detail::take_backward_of<X, D, detail::take_one_of<X, D>, G>>)
[[nodiscard]] auto take_backward(const G& dy, const X& x, std::size_t index)
    -> detail::take_backward_of<X, D, detail::take_one_of<X, D>, G>;

}  // namespace meshwise
