// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "meshwise/core/combination.hpp"
#include "meshwise/core/convert_elements.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/reduce.hpp"
#include "meshwise/core/scale.hpp"

namespace meshwise::detail {

/// Whether values of a kind may travel as another: both hold fractions.
constexpr bool is_float_kind(ElementKind kind) {
  switch (kind) {
    case ElementKind::f32:
    case ElementKind::f64:
    case ElementKind::bf16:
    case ElementKind::f16:
    case ElementKind::f8e4m3:
    case ElementKind::f8e5m2: return true;
    default: return false;
  }
}

/// Elements that are worked on at a time, in the first-level cache.
inline constexpr std::size_t wire_tile = 1024;

/// reduce_kernel<W, C>() for an element W that is combined as float, in terms of the kernels for float: the same bits
/// for a fraction of the code, which is compiled wherever a reduction could be given a wire element.
template <class W, class C>
void reduce_on_wire(std::size_t count, const void* const* from, int sources, void* const* to, int destinations, bool) {
  const Reduce combine = meshwise::reduce_kernel<float, reduction_of<C>>();
  alignas(64) float sum[wire_tile];
  alignas(64) float next[wire_tile];
  for (std::size_t first = 0; first < count; first += wire_tile) {
    const std::size_t n = count - first < wire_tile ? count - first : wire_tile;
    const auto source = [&](int s) { return static_cast<const char*>(from[s]) + first * sizeof(W); };
    const auto destination = [&](int d) { return static_cast<char*>(to[d]) + first * sizeof(W); };
    meshwise::convert_elements<W, float>(n, source(0), sum);
    for (int s = 1; s < sources; ++s) {
      meshwise::convert_elements<W, float>(n, source(s), next);
      const void* const pair[] = {sum, next};
      void* const result = sum;
      combine(n, pair, 2, &result, 1, false);
    }
    if constexpr (std::is_same_v<C, Average>) meshwise::average_elements<float>(n, sum, sum, sources);
    for (int d = 0; d < destinations; ++d) {
      if (d == 0) {
        meshwise::convert_elements<float, W>(n, sum, destination(0));
      } else if (to[d] != to[0]) {
        std::memcpy(destination(d), destination(0), n * sizeof(W));
      }
    }
  }
}

/// average_kernel<W>() likewise.
template <class W>
void average_on_wire(std::size_t count, const void* from, void* to, int ranks) {
  alignas(64) float run[wire_tile];
  for (std::size_t first = 0; first < count; first += wire_tile) {
    const std::size_t n = count - first < wire_tile ? count - first : wire_tile;
    meshwise::convert_elements<W, float>(n, static_cast<const char*>(from) + first * sizeof(W), run);
    meshwise::average_elements<float>(n, run, run, ranks);
    meshwise::convert_elements<float, W>(n, run, static_cast<char*>(to) + first * sizeof(W));
  }
}

/// What combining in a wire element takes.
struct WireKernels {
  Reduce kernel = nullptr;
  Reduce finishing = nullptr;
  Divide divide = nullptr;
};

template <class W, class C>
WireKernels wire_kernels() {
  WireKernels result;
  constexpr bool average = std::is_same_v<C, Average>;
  if constexpr (std::is_same_v<W, accumulate_t<W>>) {
    result.kernel = meshwise::reduce_kernel<W, reduction_of<C>>();
    if constexpr (average) {
      result.finishing = meshwise::reduce_kernel<W, Average>();
      result.divide = meshwise::average_kernel<W>();
    }
  } else {
    result.kernel = reduce_on_wire<W, reduction_of<C>>;
    if constexpr (average) {
      result.finishing = reduce_on_wire<W, Average>;
      result.divide = average_on_wire<W>;
    }
  }
  return result;
}

/// kind: one that `is_float_kind`.
template <class C>
WireKernels wire_kernels(ElementKind kind) {
  switch (kind) {
    case ElementKind::f64: return wire_kernels<double, C>();
    case ElementKind::bf16: return wire_kernels<bf16, C>();
    case ElementKind::f16: return wire_kernels<fp16, C>();
    case ElementKind::f8e4m3: return wire_kernels<f8e4m3, C>();
    case ElementKind::f8e5m2: return wire_kernels<f8e5m2, C>();
    default: return wire_kernels<float, C>();
  }
}

}  // namespace meshwise::detail
