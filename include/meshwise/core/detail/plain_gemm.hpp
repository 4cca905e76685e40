// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

namespace meshwise::detail {

/// A matrix anywhere in memory: element (i, j) is at data[i * row + j * column].
template <class T>
struct GemmView {
  T* data = nullptr;
  std::ptrdiff_t row = 0;
  std::ptrdiff_t column = 0;

  GemmView at(std::ptrdiff_t i, std::ptrdiff_t j) const { return {data + i * row + j * column, row, column}; }
  GemmView transposed() const { return {data, column, row}; }
};

/// What a register tile reads: k steps of packed A, and of B, whose step s is at b + s * b_step.
template <class T>
struct GemmPanels {
  std::ptrdiff_t k = 0;
  const T* a = nullptr;
  const T* b = nullptr;
  std::ptrdiff_t b_step = 0;
};

/// Where a register tile stores or adds its sums.
template <class T>
struct GemmSums {
  T* c = nullptr;
  std::ptrdiff_t row = 0;
  bool add = false;
};

/// A register tile of Rows x (Vectors vectors), written with the compilers' vector types. A step of packed A holds
/// `Rows` values; at the edges of C a kernel computes fewer rows and one vector only.
template <class T, std::size_t Bytes, std::size_t Rows, std::size_t Vectors>
struct GemmTile {
  typedef T Vector __attribute__((vector_size(Bytes)));
  typedef T Unaligned __attribute__((vector_size(Bytes), aligned(alignof(T)), may_alias));
  static constexpr std::size_t lanes = Bytes / sizeof(T);

  // Both are inlined into a function per instruction set: helpers do not take over the caller's otherwise.
  template <std::size_t Height, std::size_t Width>
  [[gnu::always_inline]] static inline void multiply(const GemmPanels<T>& p, const GemmSums<T>& to) {
    Vector sum[Height][Width] = {};
    const T* a = p.a;
    const T* b = p.b;
    const std::ptrdiff_t b_step = p.b_step;
    for (std::ptrdiff_t step = p.k; step > 0; --step) {
      Vector right[Width];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Width; ++v) right[v] = *reinterpret_cast<const Unaligned*>(b + v * lanes);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Height; ++r) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < Width; ++v) sum[r][v] += a[r] * right[v];
      }
      a += Rows;
      b += b_step;
    }
    T* c = to.c;
    const std::ptrdiff_t c_row = to.row;
    if (to.add) {
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Height; ++r, c += c_row) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < Width; ++v) *reinterpret_cast<Unaligned*>(c + v * lanes) += sum[r][v];
      }
    } else {
#pragma GCC unroll 16
      for (std::size_t r = 0; r < Height; ++r, c += c_row) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < Width; ++v) *reinterpret_cast<Unaligned*>(c + v * lanes) = sum[r][v];
      }
    }
  }

  [[gnu::always_inline]] static inline void choose(const GemmPanels<T>& p, const GemmSums<T>& to, bool all_rows,
                                                   bool all_columns) {
    if (all_rows) return all_columns ? multiply<Rows, Vectors>(p, to) : multiply<Rows, 1>(p, to);
    return all_columns ? multiply<Rows / 4, Vectors>(p, to) : multiply<Rows / 4, 1>(p, to);
  }
};

/// A register tile as data: its sizes, those of its small kernels, and the function that chooses among them.
template <class T>
struct GemmKernel {
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
  std::ptrdiff_t few_rows;
  std::ptrdiff_t few_columns;
  void (*run)(const GemmPanels<T>&, const GemmSums<T>&, bool all_rows, bool all_columns);
};

template <class T>
[[gnu::visibility("hidden")]] void gemm_baseline(const GemmPanels<T>& p, const GemmSums<T>& to, bool all_rows,
                                                 bool all_columns) {
  GemmTile<T, 16, 4, 2>::choose(p, to, all_rows, all_columns);
}

#if defined(__x86_64__)
template <class T>
[[gnu::visibility("hidden"), gnu::target("avx2,fma")]] void gemm_avx2(const GemmPanels<T>& p, const GemmSums<T>& to,
                                                                      bool all_rows, bool all_columns) {
  GemmTile<T, 32, 4, 2>::choose(p, to, all_rows, all_columns);
}

template <class T>
[[gnu::visibility("hidden"), gnu::target("avx512f,fma")]] void gemm_avx512(const GemmPanels<T>& p,
                                                                           const GemmSums<T>& to, bool all_rows,
                                                                           bool all_columns) {
  GemmTile<T, 64, 8, 2>::choose(p, to, all_rows, all_columns);
}
#endif

/// The instruction sets that the plain product knows, best last.
enum class GemmTarget : unsigned char { baseline, avx2, avx512 };

inline GemmTarget best_gemm_target() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return GemmTarget::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return GemmTarget::avx2;
#endif
  return GemmTarget::baseline;
}

template <class T>
GemmKernel<T> gemm_kernel(GemmTarget target) {
  constexpr std::ptrdiff_t lanes = 16 / static_cast<std::ptrdiff_t>(sizeof(T));
#if defined(__x86_64__)
  if (target == GemmTarget::avx512) return {8, 8 * lanes, 2, 4 * lanes, &gemm_avx512<T>};
  if (target == GemmTarget::avx2) return {4, 4 * lanes, 1, 2 * lanes, &gemm_avx2<T>};
#endif
  static_cast<void>(target);
  return {4, 2 * lanes, 1, lanes, &gemm_baseline<T>};
}

/// to[j * to_row + i] = scale * from[i * from_row + j] for a square of 16 / sizeof(T): the unit of packing.
template <class T>
[[gnu::always_inline]] inline void gemm_transpose(const T* from, std::ptrdiff_t from_row, T scale, T* to,
                                                  std::ptrdiff_t to_row) {
  typedef T Vector __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  const auto load = [=](std::ptrdiff_t i) { return reinterpret_cast<const Unaligned*>(from + i * from_row); };
  const auto store = [=](std::ptrdiff_t j) { return reinterpret_cast<Unaligned*>(to + j * to_row); };
  const Vector row0 = scale * *load(0);
  const Vector row1 = scale * *load(1);
  if constexpr (sizeof(T) == 8) {
    *store(0) = __builtin_shufflevector(row0, row1, 0, 2);
    *store(1) = __builtin_shufflevector(row0, row1, 1, 3);
  } else {
    const Vector row2 = scale * *load(2);
    const Vector row3 = scale * *load(3);
    const Vector low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
    const Vector high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
    const Vector low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
    const Vector high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
    *store(0) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *store(1) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *store(2) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    *store(3) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  }
}

/// Panels of `width` rows of `from` (rows x steps): to[step * width + row], the last panel filled up with zeros.
/// The width is a multiple of the 16-byte unit.
template <class T>
[[gnu::visibility("hidden")]] void gemm_pack(const GemmView<const T>& from, std::ptrdiff_t rows, std::ptrdiff_t steps,
                                             std::ptrdiff_t width, T scale, T* to) {
  typedef T Unaligned __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  constexpr std::ptrdiff_t unit = 16 / static_cast<std::ptrdiff_t>(sizeof(T));
  for (std::ptrdiff_t first = 0; first < rows; first += width, to += width * steps) {
    const GemmView<const T> panel = from.at(first, 0);
    const std::ptrdiff_t filled = rows - first < width ? rows - first : width;
    std::ptrdiff_t done = 0;
    if (panel.row == 1) {
      done = filled / unit * unit;
      for (std::ptrdiff_t step = 0; step < steps; ++step) {
        const T* const source = panel.data + step * panel.column;
        T* const target = to + step * width;
        for (std::ptrdiff_t r = 0; r < done; r += unit) {
          *reinterpret_cast<Unaligned*>(target + r) = scale * *reinterpret_cast<const Unaligned*>(source + r);
        }
      }
    } else if (panel.column == 1) {
      for (; done + unit <= filled; done += unit) {
        const T* const source = panel.data + done * panel.row;
        T* const target = to + done;
        std::ptrdiff_t step = 0;
        for (; step + unit <= steps; step += unit) {
          gemm_transpose(source + step, panel.row, scale, target + step * width, width);
        }
        for (; step < steps; ++step) {
          for (std::ptrdiff_t r = 0; r < unit; ++r) target[step * width + r] = scale * source[r * panel.row + step];
        }
      }
    }
    for (std::ptrdiff_t r = done; r < width; ++r) {
      for (std::ptrdiff_t step = 0; step < steps; ++step) {
        to[step * width + r] = r < filled ? scale * panel.data[r * panel.row + step * panel.column] : T(0);
      }
    }
  }
}

/// C = beta * C; zero is stored, not multiplied, so that C is not read.
template <class T>
[[gnu::visibility("hidden")]] void gemm_scale(std::ptrdiff_t m, std::ptrdiff_t n, T beta, const GemmView<T>& c) {
  if (beta == T(1)) return;
  for (std::ptrdiff_t i = 0; i < m; ++i) {
    T* const row = c.data + i * c.row;
    for (std::ptrdiff_t j = 0; j < n; ++j) row[j * c.column] = beta == T(0) ? T(0) : beta * row[j * c.column];
  }
}

/// One tile of C, through a buffer where C's edge or its strides do not allow to store whole vectors.
template <class T>
[[gnu::visibility("hidden")]] void gemm_tile(const GemmKernel<T>& kernel, const GemmPanels<T>& panels,
                                             std::ptrdiff_t height, std::ptrdiff_t width, bool add,
                                             const GemmView<T>& c) {
  const bool all_rows = height > kernel.few_rows;
  const bool all_columns = width > kernel.few_columns;
  const std::ptrdiff_t covered_rows = all_rows ? kernel.rows : kernel.few_rows;
  const std::ptrdiff_t covered_columns = all_columns ? kernel.columns : kernel.few_columns;
  if (height >= covered_rows && width >= covered_columns && c.column == 1) {
    return kernel.run(panels, {c.data, c.row, add}, all_rows, all_columns);
  }
  height = height < covered_rows ? height : covered_rows;
  width = width < covered_columns ? width : covered_columns;
  alignas(64) T edge[1024 / sizeof(T)];
  kernel.run(panels, {edge, covered_columns, false}, all_rows, all_columns);
  for (std::ptrdiff_t i = 0; i < height; ++i) {
    const T* const from = edge + i * covered_columns;
    T* const to = c.data + i * c.row;
    for (std::ptrdiff_t j = 0; j < width; ++j) {
      T& element = to[j * c.column];
      element = add ? element + from[j] : from[j];
    }
  }
}

/// Memory for packed panels, on a cache line.
struct GemmPackSpace {
  explicit GemmPackSpace(std::size_t bytes) : memory(::operator new (bytes, std::align_val_t{64})) {}
  GemmPackSpace(const GemmPackSpace&) = delete;
  GemmPackSpace& operator=(const GemmPackSpace&) = delete;
  ~GemmPackSpace() { ::operator delete (memory, std::align_val_t{64}); }

  void* const memory;
};

/// The blocked product. The blocks of k are fixed, so the order of each sum depends on k alone.
template <class T>
[[gnu::visibility("hidden")]] void gemm_blocked(const GemmKernel<T>& kernel, std::ptrdiff_t m, std::ptrdiff_t n,
                                                std::ptrdiff_t k, T scale_a, const GemmView<const T>& a, T scale_b,
                                                const GemmView<const T>& b, bool add, const GemmView<T>& c) {
  using Index = std::ptrdiff_t;
  // A panel of B (32 KiB at most) stays in the first cache, a block of A (144 KiB) in the second.
  constexpr Index block_k = sizeof(T) == 4 ? 256 : 128;
  constexpr Index block_m = 144;
  constexpr Index block_n = 1024;
  const auto least = [](Index x, Index y) { return x < y ? x : y; };
  const auto whole = [](Index x, Index unit) { return (x + unit - 1) / unit * unit; };
  const Index rows = kernel.rows;
  const Index columns = kernel.columns;
  // With few rows, packing B costs as much as the product: read it where it lies.
  const bool direct = b.column == 1 && scale_b == T(1) && m <= 4 * rows;

  const Index depth = least(k, block_k);
  const Index pack_a = whole(whole(least(m, block_m), rows) * depth, 64 / static_cast<Index>(sizeof(T)));
  const Index pack_b = direct ? columns * depth : whole(least(n, block_n), columns) * depth;
  const GemmPackSpace space(static_cast<std::size_t>(pack_a + pack_b) * sizeof(T));
  T* const packed_a = static_cast<T*>(space.memory);
  T* const packed_b = packed_a + pack_a;

  for (Index jc = 0; jc < n; jc += block_n) {
    const Index nc = least(n - jc, block_n);
    const Index unpacked = direct ? nc / columns * columns : 0;
    for (Index pc = 0; pc < k; pc += block_k) {
      const Index kc = least(k - pc, block_k);
      gemm_pack<T>(b.at(pc, jc + unpacked).transposed(), nc - unpacked, kc, columns, scale_b, packed_b);
      for (Index ic = 0; ic < m; ic += block_m) {
        const Index mc = least(m - ic, block_m);
        gemm_pack<T>(a.at(ic, pc), mc, kc, rows, scale_a, packed_a);
        GemmPanels<T> panels;
        panels.k = kc;
        for (Index jr = 0; jr < nc; jr += columns) {
          const bool lies = jr < unpacked;
          panels.b = lies ? b.at(pc, jc + jr).data : packed_b + (jr - unpacked) * kc;
          panels.b_step = lies ? b.row : columns;
          for (Index ir = 0; ir < mc; ir += rows) {
            panels.a = packed_a + ir * kc;
            gemm_tile<T>(kernel, panels, mc - ir, nc - jr, add || pc > 0, c.at(ic + ir, jc + jr));
          }
        }
      }
    }
  }
}

/// C = alpha * A * B + beta * C with the given tile.
///
/// The tile's wide side goes along the longer side of C. alpha scales A's elements, whichever operand they become, so
/// that both ways have the same bits.
template <class T>
[[gnu::visibility("hidden")]] void gemm_strided(GemmTarget target, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                                                T alpha, const GemmView<const T>& a, const GemmView<const T>& b, T beta,
                                                const GemmView<T>& c) {
  if (m == 0 || n == 0) return;
  const bool nothing = k == 0 || alpha == T(0);
  if (nothing || beta != T(0)) gemm_scale(m, n, beta, c);
  if (nothing) return;
  const bool add = beta != T(0);
  const GemmKernel<T> kernel = gemm_kernel<T>(target);
  if (n < kernel.columns && m > n) {
    gemm_blocked<T>(kernel, n, m, k, T(1), b.transposed(), alpha, a.transposed(), add, c.transposed());
  } else {
    gemm_blocked<T>(kernel, m, n, k, alpha, a, T(1), b, add, c);
  }
}

}  // namespace meshwise::detail
