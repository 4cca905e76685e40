// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "meshwise/core/memory.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/cores.hpp"
#include "team.hpp"

namespace bench {

// Written here and not taken from the library, whose rate it is to judge.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline void copy_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
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

inline void copy_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
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

/// Copies around the caches where the processor can, with its longest vectors: up to a tenth faster than with short
/// ones. Both are aligned to a line, bytes is a multiple of 256.
inline void copy_non_temporal(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? copy_avx512(to, from, bytes) : copy_sse2(to, from, bytes);
#else
  std::memcpy(to, from, bytes);
#endif
}

/// What the memory can do: one thread on each core, at most one per rank, copies a large array of its own.
class CopyLimit {
 public:
  static constexpr std::size_t bytes = std::size_t{64} << 20;

  /// ranks: of the team. heap: of this rank. Ranks that do not copy need no arrays.
  CopyLimit(meshwise::Heap& heap, int rank, int ranks) : copiers_(std::min(ranks, meshwise::detail::usable_cores())) {
    if (rank >= copiers_) return;
    from_ = heap.allocate(bytes);
    to_ = heap.allocate(bytes);
    std::memset(from_.data(), 1, bytes);
    std::memset(to_.data(), 2, bytes);
  }

  /// Bytes read and written per second, all threads together.
  double rate(Team& team, meshwise::Communicator& world) {
    const double seconds = team.time(
        world, 1, [&] { copy_non_temporal(to_.data(), from_.data(), bytes); }, copiers_);
    return 2.0 * bytes * copiers_ / seconds;
  }

 private:
  int copiers_;
  meshwise::Storage from_, to_;
};

/// How far the cores of ranks 0 and 1 are from each other: nanoseconds for a line to go there and back.
///
/// Virtual machines move their cores about; timings compare only while this stays the same.
class RoundTrip {
 public:
  /// The shortest mean of several series, so that a thread that was not running does not count. On all ranks.
  double nanoseconds(Team& team, meshwise::Communicator& world) {
    double best = 0;
    for (int series = 0; series < 5 && world.size() > 1; ++series) {
      if (world.rank() == 0) line_ = 0;
      const double seconds = team.time(
          world, 1, [&] { bounce(world.rank()); }, 2);
      const double mean = seconds * 1e9 / rounds;
      if (series == 0 || mean < best) best = mean;
    }
    return best;
  }

 private:
  static constexpr std::uint32_t rounds = 2000;

  void bounce(int side) {
    const std::uint32_t mine = side == 0 ? 0 : 1;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t turn = 2 * i + mine;
      int patience = 20'000;
      while (line_.load(std::memory_order_acquire) != turn) {
        if (--patience > 0) continue;
        sched_yield();  // the other one may be waiting for this core
      }
      line_.store(turn + 1, std::memory_order_release);
    }
  }

  alignas(128) std::atomic<std::uint32_t> line_{0};
  [[maybe_unused]] std::byte rest_[128 - sizeof(std::atomic<std::uint32_t>)]{};
};

/// What round trips before and after a measurement mean: the cores of the first ranks are near or far, or were busy with
/// other work.
inline std::string placement(double before, double after) {
  const auto word = [](double ns) { return ns < 200 ? "near" : ns < 2000 ? "far" : "busy"; };
  const std::string begun = word(before), ended = word(after);
  return begun == ended ? begun : begun + ", then " + ended;
}

}  // namespace bench
