// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

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

/// The walk over T's local piece beside the piece of a tensor that has a subset of its dims, in order, placed alike.
template <class Small, class T>
Walk<T::rank> walk_beside(const T& x) {
  Walk<T::rank> walk;
  std::array<std::size_t, T::rank> stride{};
  std::size_t dense = 1;
  [&]<class... Ds>(list<Ds...>) {
    constexpr std::array<bool, T::rank> has{contains<Ds, dims_of<Small>>...};
    for (std::size_t i = T::rank; i-- > 0;) {
      stride[i] = has[i] ? dense : 0;
      if (has[i]) dense *= x.ranges()[i].size;
    }
    for (std::size_t i = 0; i < T::rank; ++i) {
      const std::size_t n = x.ranges()[i].size;
      if (n == 1) continue;
      if (walk.loops != 0) {
        const std::size_t last = walk.loops - 1;
        const bool continues = walk.stride[last] == stride[i] * n && (stride[i] != 0) == (walk.stride[last] != 0);
        if (continues) {
          walk.extent[last] *= n;
          walk.stride[last] = stride[i];
          continue;
        }
      }
      walk.extent[walk.loops] = n;
      walk.stride[walk.loops] = stride[i];
      ++walk.loops;
    }
  }(dims_of<typename T::dims>{});
  if (walk.loops == 0) {
    walk.extent[0] = 1;
    walk.stride[0] = 0;
    walk.loops = 1;
  }
  return walk;
}

/// Light check: the dims that two operands share have one extent, on one mesh.
template <class A, class B>
void check_operands(const char* verb, const A& a, const B& b) {
  if (!(a.mesh() == b.mesh())) {
    fail(verb, "operands on one mesh", "operands on two meshes", "build both from the same Mesh");
  }
  [&]<class... Ds>(list<Ds...>) {
    [[maybe_unused]] const auto one = [&]<class D>(type<D>) {
      if constexpr (contains<D, dims_of<typename B::dims>>) {
        if (a.template extent<D>() != b.template extent<D>()) {
          fail(verb, name_of<D>() + " = " + std::to_string(a.template extent<D>()) + " as in the first operand",
               name_of<D>() + " = " + std::to_string(b.template extent<D>()) + " in the second",
               "operands that share a dim have the same global extent", a.mesh().world().rank());
        }
      }
    };
    (one(type<Ds>{}), ...);
  }(dims_of<typename A::dims>{});
}

/// The extents of the dims D2 taken from a tensor that has them all.
template <class D2, class T>
Extents<D2> extents_from(const T& x) {
  return []<class... Ds>(const T& t, list<Ds...>) { return Extents<D2>{t.template extent<Ds>()...}; }(x, dims_of<D2>{});
}

/// The local piece of a tensor that this operation has just made, or shares with an argument it uses up.
template <class T>
auto* written(T& result) {
  return const_cast<typename T::element*>(result.local().data());
}

/// A tensor of layout L to write a result into: the storage of an rvalue that shares it with nobody, which then is
/// empty like one that was moved from, else new memory.
template <class L, class T>
auto result_like(T&& x) {
  using X = bare<T>;
  using Result = Tensor<typename X::element, typename X::dims, L, typename X::space>;
  if constexpr (!std::is_lvalue_reference_v<T>) {
    if (x.unique()) {
      const X last(std::move(x));
      return Result(last.mesh(), last.extents(), last.storage(), last.offset());
    }
  }
  return Result(x.mesh(), x.extents(), uninitialised{});
}

}  // namespace meshwise::detail
