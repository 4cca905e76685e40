// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace harness {

// Copies around the caches, written here and not taken from the library, whose rate they are to judge. Both ends are
// aligned to a line, bytes is a multiple of 256.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline void copy_around_avx512(std::byte* to, const std::byte* from,
                                                                  std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 256) {
    const __m512i a = _mm512_load_si512(from + i), b = _mm512_load_si512(from + i + 64);
    const __m512i c = _mm512_load_si512(from + i + 128), d = _mm512_load_si512(from + i + 192);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 64), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 128), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 192), d);
  }
  _mm_sfence();
}

inline void copy_around_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    const auto* in = reinterpret_cast<const __m128i*>(from + i);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1);
    const __m128i c = _mm_load_si128(in + 2), d = _mm_load_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();
}
#endif

inline void copy_around(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? copy_around_avx512(to, from, bytes) : copy_around_sse2(to, from, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace harness
