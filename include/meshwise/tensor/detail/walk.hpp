// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/tensor/convert.hpp"

namespace meshwise::detail {

/// Nested loops over a dense array, with the position in a second array that is dense over some of the dims and does
/// not move along the others. Loops that continue each other in both arrays are merged.
template <std::size_t Rank>
struct Walk {
  std::array<std::size_t, Rank + 1> extent{};
  std::array<std::size_t, Rank + 1> stride{};  // in the second array
  std::size_t loops = 0;                       // outermost first; the last one is the inner loop

  /// Calls row(first, second, count, stride) for each run of the inner loop: positions in both arrays.
  template <class Row>
  void each(Row row) const {
    std::array<std::size_t, Rank + 1> at{};
    std::size_t first = 0, second = 0;
    const std::size_t inner = extent[loops - 1];
    for (std::size_t i = 0; i < loops; ++i) {
      if (extent[i] == 0) return;
    }
    for (;;) {
      row(first, second, inner, stride[loops - 1]);
      first += inner;
      std::size_t i = loops - 1;
      for (;;) {
        if (i == 0) return;
        --i;
        second += stride[i];
        if (++at[i] < extent[i]) break;
        second -= stride[i] * extent[i];
        at[i] = 0;
      }
    }
  }
};

/// The walk over a dense array of these sizes beside one that has the dims for which `has` is true.
template <std::size_t Rank>
Walk<Rank> walk_over(const std::array<std::size_t, Rank>& sizes, const std::array<bool, Rank>& has) {
  Walk<Rank> walk;
  std::array<std::size_t, Rank> stride{};
  std::size_t dense = 1;
  for (std::size_t i = Rank; i-- > 0;) {
    stride[i] = has[i] ? dense : 0;
    if (has[i]) dense *= sizes[i];
  }
  std::size_t i = 0;
  for (const std::size_t n : sizes) {  // a number has none
    const std::size_t step = stride[i++];
    if (n == 1) continue;
    if (walk.loops != 0) {
      const std::size_t last = walk.loops - 1;
      const bool continues = walk.stride[last] == step * n && (step != 0) == (walk.stride[last] != 0);
      if (continues) {
        walk.extent[last] *= n;
        walk.stride[last] = step;
        continue;
      }
    }
    walk.extent[walk.loops] = n;
    walk.stride[walk.loops] = step;
    ++walk.loops;
  }
  if (walk.loops == 0) {
    walk.extent[0] = 1;
    walk.stride[0] = 0;
    walk.loops = 1;
  }
  return walk;
}

/// The walk over T's local piece beside the piece of a tensor that has a subset of its dims, in order, placed alike.
template <class Small, class T>
Walk<T::rank> walk_beside(const T& x) {
  Walk<T::rank> walk = []<class... Ds>(const T& t, list<Ds...>) {
    return walk_over<T::rank>({t.ranges()[dim_index<Ds, T>].size...}, {contains<Ds, dims_of<Small>>...});
  }(x, dims_of<typename T::dims>{});
  if (x.local().empty()) walk.extent[0] = 0;
  return walk;
}

[[noreturn]] inline void refuse_extents(const char* verb, const std::string& dim, const Extent& a, const Extent& b,
                                        int rank) {
  const auto text = [&](const Extent& extent) {
    std::string result = dim + " = " + std::to_string(extent.size());
    if (a.size() == b.size()) {
      result += " in parts of";
      for (const std::size_t n : extent.counts()) result += ' ' + std::to_string(n);
    }
    return result;
  };
  fail(verb, text(a) + " as in the first operand", text(b) + " in the second",
       "operands that share a dim have the same global extent", rank);
}

/// Light check: two operands are on one mesh.
template <class A, class B>
void check_meshes(const char* verb, const A& a, const B& b) {
  if (a.mesh() == b.mesh()) return;
  fail(verb, "operands on one mesh", "operands on two meshes", "build both from the same Mesh",
       a.mesh().world().rank());
}

/// Light check: a dim that two operands share has one extent, with the same counts where both are cut by counts.
template <class D, class A, class B>
void check_extent(const char* verb, const A& a, const B& b) {
  const Extent &x = a.extents()[dim_index<D, A>], &y = b.extents()[dim_index<D, B>];
  if (x.size() != y.size() || (x.counted() && y.counted() && !(x == y))) {
    refuse_extents(verb, name_of<D>(), x, y, a.mesh().world().rank());
  }
}

/// Light check of all dims that two operands share, but for Except, and of their meshes.
template <class Except = void, class A, class B>
void check_operands(const char* verb, const A& a, const B& b) {
  check_meshes(verb, a, b);
  [&]<class... Ds>(list<Ds...>) {
    [[maybe_unused]] const auto one = [&]<class D>(type<D>) {
      if constexpr (!std::is_same_v<D, Except> && contains<D, dims_of<typename B::dims>>) check_extent<D>(verb, a, b);
    };
    (one(type<Ds>{}), ...);
  }(dims_of<typename A::dims>{});
}

/// The extents of the dims D2 taken from a tensor that has them all, with what they say besides their size.
template <class D2, class T>
Extents<D2> extents_from(const T& x) {
  return []<class... Ds>(const T& t, list<Ds...>) { return Extents<D2>{t.extents()[dim_index<Ds, T>]...}; }(
             x, dims_of<D2>{});
}

/// The extents of the dims D2 from two tensors that have them between them; of a dim that both have, those of a.
template <class D2, class A, class B>
Extents<D2> extents_of_both(const A& a, const B& b) {
  return [&]<class... Ds>(list<Ds...>) {
    [[maybe_unused]] const auto one = [&]<class D>(type<D>) {
      if constexpr (contains<D, dims_of<typename A::dims>>) {
        return a.extents()[dim_index<D, A>];
      } else {
        return b.extents()[dim_index<D, B>];
      }
    };
    return Extents<D2>{one(type<Ds>{})...};
  }(dims_of<D2>{});
}

/// The local piece of a tensor that this operation has just made, or shares with an argument it uses up.
template <class T>
auto* written(T& result) {
  return const_cast<typename T::element*>(result.local().data());
}

/// A tensor of layout L to write a result into: the storage of an rvalue that shares it with nobody, which then is
/// empty like one that was moved from, else new memory. A const rvalue keeps its elements.
template <class L, class T>
auto result_like(T&& x) {
  using X = bare<T>;
  using Result = Tensor<typename X::element, typename X::dims, L, typename X::space>;
  if constexpr (!std::is_lvalue_reference_v<T> && !std::is_const_v<T>) {
    if (x.unique()) {
      const X last(std::move(x));
      return Result(last.mesh(), last.extents(), last.storage(), last.offset());
    }
  }
  return Result(x.mesh(), x.extents(), uninitialised{});
}

}  // namespace meshwise::detail
