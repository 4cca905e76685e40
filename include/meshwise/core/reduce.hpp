// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "meshwise/core/combination.hpp"
#include "meshwise/core/detail/fold.hpp"
#include "meshwise/core/detail/isa.hpp"
#include "meshwise/core/element.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/reduction.hpp"

namespace meshwise {

/// Combines `sources` arrays of `count` elements into `destinations` equal arrays.
///
/// For every i and j: to[j][i] = ((from[0][i] op from[1][i]) op from[2][i]) op ..., folded in that order in
/// `accumulate_t<T>`, for Average divided by `sources`, and rounded once at the end. One source is a copy, bit for bit,
/// except that logical operations give 0 or 1. Elements may have any alignment.
/// `streaming` stores around the caches: right when the destinations do not fit into them and are not read soon.
///
/// Cost: each source is read once and each destination written once; no allocation; no synchronisation, except that
/// streaming stores are ordered before everything that follows the call.
/// Order: a destination may be a source or another destination, exactly; partial overlap is undefined. The bits depend
/// neither on the processor nor on `streaming`, count or alignment, nor on where an element stands. That includes NaN:
/// a sum or a product that is NaN is quiet and has the bits of all NaN that went into it, or is the default NaN if
/// there were none; only of operations of the user's own it is unspecified which NaN comes out of several.
/// Accuracy: |result - exact| <= u |result| + (sources - 1) v (|from[0][i]| + |from[1][i]| + ...) for sums, to first
/// order, with u and v as all_reduce has them.
/// Errors: fewer than 1 source. A count or a number of destinations of 0 does nothing.
using Reduce = void (*)(std::size_t count, const void* const* from, int sources, void* const* to, int destinations,
                        bool streaming);

namespace detail {

using Fold = void (*)(char* to, const void* const* from, int sources, std::size_t first, std::size_t bytes);
using Stream = void (*)(char* to, const char* from, std::size_t bytes);

/// Bytes that are folded at a time where the result goes to more than one place or around the caches. Small enough to
/// stay in the first-level cache; reads and writes in bursts are faster from memory than alternating lines. (Measured:
/// bursts of exactly a page lose 6 % of the bandwidth of four streams that are aligned alike, others do not.)
inline constexpr std::size_t tile = 8192;

/// Orders streaming stores before whatever follows.
inline void store_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// Of the first `end` bytes at `to`, how many lie before the last beginning of a line.
inline std::size_t whole_lines(const void* to, std::size_t end) {
  const std::size_t over = (reinterpret_cast<std::uintptr_t>(to) + end) % line;
  return over < end ? end - over : 0;
}

/// Calls `each(first, n)` for the tiles of `bytes` bytes.
template <class Each>
void for_tiles(std::size_t bytes, const Each& each) {
  for (std::size_t first = 0; first < bytes; first += tile) each(first, bytes - first < tile ? bytes - first : tile);
}

/// Streams what can be streamed of a destination once the source is known up to `first + n`: whole lines, so that no
/// line is written in two parts, but everything at the end. `from` holds the bytes from `first` on, and a line before.
inline void stream_tile(Stream stream, void* to, const char* from, std::size_t first, std::size_t n,
                        std::size_t bytes) {
  const std::size_t begin = whole_lines(to, first);
  const std::size_t end = first + n == bytes ? bytes : whole_lines(to, first + n);
  stream(static_cast<char*>(to) + begin, from - (first - begin), end - begin);
}

/// One source to several destinations, reading it once.
inline void copy(Stream stream, std::size_t bytes, const void* source, void* const* to, int destinations,
                 bool streaming) {
  const char* const from = static_cast<const char*>(source);
  if (destinations == 1 && !streaming) {
    if (to[0] != source) std::memcpy(to[0], source, bytes);
    return;
  }
  for_tiles(bytes, [&](std::size_t first, std::size_t n) {
    for (int d = 0; d < destinations; ++d) {
      if (to[d] == source) continue;
      if (streaming) {
        stream_tile(stream, to[d], from + first, first, n, bytes);
      } else {
        std::memcpy(static_cast<char*>(to[d]) + first, from + first, n);
      }
    }
  });
  if (streaming) store_fence();
}

/// Several sources to several destinations.
inline void combine(Fold fold, Stream stream, std::size_t bytes, const void* const* from, int sources, void* const* to,
                    int destinations, bool streaming) {
  if (!streaming) {
    if (destinations == 1) return fold(static_cast<char*>(to[0]), from, sources, 0, bytes);
    for_tiles(bytes, [&](std::size_t first, std::size_t n) {
      char* const result = static_cast<char*>(to[0]) + first;
      fold(result, from, sources, first, n);
      for (int d = 1; d < destinations; ++d) {
        if (to[d] != to[0]) std::memcpy(static_cast<char*>(to[d]) + first, result, n);
      }
    });
    return;
  }
  alignas(line) char buffer[line + tile];
  for_tiles(bytes, [&](std::size_t first, std::size_t n) {
    if (first > 0) std::memcpy(buffer, buffer + tile, line);
    fold(buffer + line, from, sources, first, n);
    for (int d = 0; d < destinations; ++d) stream_tile(stream, to[d], buffer + line, first, n, bytes);
  });
  store_fence();
}

/// Checks the counts, and sees to the cases that need no arithmetic.
inline bool trivial(const char* operation, Stream stream, std::size_t bytes, const void* const* from, int sources,
                    void* const* to, int destinations, bool streaming) {
  if (bytes == 0 || destinations <= 0) return true;
  if (sources < 1) fail(operation, "at least 1 source", std::to_string(sources), "pass the arrays to combine");
  if (sources == 1) copy(stream, bytes, from[0], to, destinations, streaming);
  return sources == 1;
}

template <Isa isa>
constexpr Stream stream_of() {
#if defined(__x86_64__)
  if constexpr (isa == Isa::avx512) return avx512::stream;
  if constexpr (isa == Isa::avx2) return avx2::stream;
#endif
  return baseline::stream;
}

/// Sums integers and divides, so many at a time that the sums are still in the first-level cache.
template <class T, Fold sum>
void average_integers(char* to, const void* const* from, int sources, std::size_t first, std::size_t bytes) {
  for_tiles(bytes, [&](std::size_t done, std::size_t n) {
    sum(to + done, from, sources, first + done, n);
    for (char* at = to + done; at != to + done + n; at += sizeof(T)) {
      T x;
      std::memcpy(&x, at, sizeof(T));
      x = Average::finish(x, sources);
      std::memcpy(at, &x, sizeof(T));
    }
  });
}

/// The fold of an operation that the vectors do not know: its apply, over runs that lie in the first-level cache.
template <class T, class Op>
void fold_any(char* to, const void* const* from, int sources, std::size_t first, std::size_t bytes) {
  using A = accumulate_t<T>;
  constexpr std::size_t most = 2048 / sizeof(A);
  A run[most];
  T x;
  while (bytes > 0) {
    const std::size_t n = bytes / sizeof(T) < most ? bytes / sizeof(T) : most;
    const char* source = static_cast<const char*>(from[0]) + first;
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(&x, source + i * sizeof(T), sizeof(T));
      run[i] = static_cast<A>(x);
    }
    for (int s = 1; s < sources; ++s) {
      source = static_cast<const char*>(from[s]) + first;
      for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(&x, source + i * sizeof(T), sizeof(T));
        run[i] = Op::apply(run[i], static_cast<A>(x));
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      x = static_cast<T>(run[i]);
      std::memcpy(to + i * sizeof(T), &x, sizeof(T));
    }
    to += n * sizeof(T);
    first += n * sizeof(T);
    bytes -= n * sizeof(T);
  }
}

/// The integer type on whose kernels T's are run: signs matter to no operation that wraps or works bit by bit.
template <class T, class Op>
using folded_as = typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<Op, Min> &&
                                                  !std::is_same_v<Op, Max> && is_built_in<Op>,
                                              std::make_unsigned<T>, std::type_identity<T>>::type;

template <class T, class C, Isa isa>
constexpr Fold fold_of() {
  if constexpr (std::is_same_v<C, Average> && std::is_integral_v<T>) {
    return average_integers<T, fold_of<std::make_unsigned_t<T>, Sum, isa>()>;
  } else if constexpr (!std::is_same_v<C, Average> && !is_built_in<C>) {
    return fold_any<T, C>;
  } else {
#if defined(__x86_64__)
    if constexpr (isa == Isa::avx512) return avx512::fold<T, C>;
    if constexpr (isa == Isa::avx2) return avx2::fold<T, C>;
#endif
    return baseline::fold<T, C>;
  }
}

template <class T, class C, Isa isa>
void reduce(std::size_t count, const void* const* from, int sources, void* const* to, int destinations,
            bool streaming) {
  constexpr Stream stream = stream_of<isa>();
  const std::size_t bytes = count * sizeof(T);
  const bool copies = sources != 1 || !is_logical<C>;
  if (copies && trivial("reduce", stream, bytes, from, sources, to, destinations, streaming)) return;
  if (bytes == 0 || destinations <= 0) return;
  combine(fold_of<T, C, isa>(), stream, bytes, from, sources, to, destinations, streaming);
}

template <std::size_t size, Isa isa>
void copy_elements(std::size_t count, const void* const* from, int sources, void* const* to, int destinations,
                   bool streaming) {
  const std::size_t bytes = count * size;
  if (trivial("copy", stream_of<isa>(), bytes, from, sources, to, destinations, streaming)) return;
  fail("copy", "1 source", std::to_string(sources), "combine several sources with a kernel of reduce_kernel");
}

template <class T, class C>
Reduce reduce_kernel(Isa isa) {
  using Performed = std::conditional_t<std::is_same_v<C, PreMultipliedSum>, Sum, C>;
  using Stored = folded_as<T, Performed>;
  if (isa == Isa::avx512) return reduce<Stored, Performed, Isa::avx512>;
  if (isa == Isa::avx2) return reduce<Stored, Performed, Isa::avx2>;
  return reduce<Stored, Performed, Isa::baseline>;
}

template <std::size_t size>
Reduce copy_kernel(Isa isa) {
  if (isa == Isa::avx512) return copy_elements<size, Isa::avx512>;
  if (isa == Isa::avx2) return copy_elements<size, Isa::avx2>;
  return copy_elements<size, Isa::baseline>;
}

}  // namespace detail

/// The kernel for elements of T combined as C says, for the instruction set of this processor. See `Reduce`.
///
/// Average: the sources must be the contributions of all ranks. PreMultipliedSum: they are multiplied already (see
/// scale_elements), and the kernel is that of Sum. The library's own operations are vectorised by hand; others are
/// loops over their `apply`.
template <Element T, Combination C>
  requires Combines<C, T> Reduce reduce_kernel() { return detail::reduce_kernel<T, C>(detail::best_isa()); }

/// The kernel that copies one source of elements of any type to several destinations. See `Reduce`.
///
/// element_size: 1, 2, 4, 8 or 16 bytes; with 1, the kernel's count is in bytes and serves every type.
/// Errors: any other size; when called, the kernel refuses more than one source.
inline Reduce copy_kernel(std::size_t element_size) {
  const detail::Isa isa = detail::best_isa();
  switch (element_size) {
    case 1: return detail::copy_kernel<1>(isa);
    case 2: return detail::copy_kernel<2>(isa);
    case 4: return detail::copy_kernel<4>(isa);
    case 8: return detail::copy_kernel<8>(isa);
    case 16: return detail::copy_kernel<16>(isa);
    default: break;
  }
  fail("copy_kernel", "an element size of 1, 2, 4, 8 or 16 bytes", std::to_string(element_size),
       "take the kernel for 1 byte and give its counts in bytes");
}

}  // namespace meshwise
