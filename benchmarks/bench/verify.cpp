// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "values.hpp"

namespace harness {
namespace {

template <class T>
struct Verifier {
  const Work& work;
  std::uint32_t seed;
  std::int64_t wrong = 0;

  static std::size_t index(int k) { return static_cast<std::size_t>(k); }
  T* in() const { return reinterpret_cast<T*>(work.in); }
  T* out() const { return reinterpret_cast<T*>(work.out); }

  void fill(T* to, std::size_t count, std::size_t first) const {
    for (std::size_t i = 0; i < count; ++i) to[i] = value_of<T>(seed, work.rank, first + i, work.redop);
  }

  /// to[0, count) has to be elements first, first + 1, ... of what `rank` has put in.
  void expect_copy(const T* found, std::size_t count, int rank, std::size_t first) {
    for (std::size_t i = 0; i < count; ++i) {
      const T expected = value_of<T>(seed, rank, first + i, work.redop);
      wrong += std::memcmp(found + i, &expected, sizeof(T)) != 0 ? 1 : 0;
    }
  }

  /// The same, combined over all ranks.
  void expect_combined(const T* found, std::size_t count, std::size_t first) {
    constexpr std::size_t piece = 512;
    std::array<Expected<T>, piece> expected{}, magnitude{};
    for (std::size_t begin = 0; begin < count; begin += piece) {
      const std::size_t size = std::min(piece, count - begin);
      for (int rank = 0; rank < work.ranks; ++rank) {
        for (std::size_t i = 0; i < size; ++i) {
          const Expected<T> value = widened(value_of<T>(seed, rank, first + begin + i, work.redop));
          const Expected<T> positive = value < 0 ? static_cast<Expected<T>>(0 - value) : value;
          expected[i] = rank == 0 ? value : combined(expected[i], value, work.redop);
          magnitude[i] = rank == 0 ? positive : combined(magnitude[i], positive, work.redop);
        }
      }
      for (std::size_t i = 0; i < size; ++i) {
        wrong += is_wrong(found[begin + i], expected[i], magnitude[i], work.ranks, work.redop) ? 1 : 0;
      }
    }
  }

  void prepare() const {
    const std::size_t whole = work.extent.whole, count = work.extent.count;
    std::memset(work.out, 0xa5, whole * sizeof(T));
    switch (work.verb) {
      case Verb::all_gather:
      case Verb::gather: return fill(in() + work.own_begin(), count, 0);
      case Verb::scatter:
        if (work.rank == work.root) fill(in(), whole, 0);
        return;
      case Verb::broadcast:
        if (work.rank == work.root) fill(out(), whole, 0);
        return;
      case Verb::barrier: return;
      default: return fill(in(), whole, 0);
    }
  }

  void check() {
    const std::size_t whole = work.extent.whole, count = work.extent.count;
    const bool at_root = work.rank == work.root;
    switch (work.verb) {
      case Verb::all_reduce: return expect_combined(out(), whole, 0);
      case Verb::reduce_scatter: return expect_combined(out() + work.own_begin(), count, index(work.rank) * count);
      case Verb::reduce:
        if (at_root) expect_combined(out(), whole, 0);
        return;
      case Verb::gather:
        if (!at_root) return;
        [[fallthrough]];
      case Verb::all_gather:
        for (int from = 0; from < work.ranks; ++from) expect_copy(out() + index(from) * count, count, from, 0);
        return;
      case Verb::broadcast: return expect_copy(out(), whole, work.root, 0);
      case Verb::scatter: return expect_copy(out() + work.own_begin(), count, work.root, index(work.rank) * count);
      case Verb::all_to_all:
        for (int from = 0; from < work.ranks; ++from) {
          expect_copy(out() + index(from) * count, count, from, index(work.rank) * count);
        }
        return;
      case Verb::all_to_all_v: return check_blocks();
      case Verb::send_recv: return expect_copy(out(), whole, (work.rank + work.ranks - 1) % work.ranks, 0);
      case Verb::barrier: return;
    }
  }

  void check_blocks() {
    std::size_t at = 0;
    for (int from = 0; from < work.ranks; ++from) {
      std::size_t first = 0;
      for (int to = 0; to < work.rank; ++to)
        first += block_between(from, to, work.extent.count, work.ranks, work.ragged);
      const std::size_t size = block_between(from, work.rank, work.extent.count, work.ranks, work.ragged);
      expect_copy(out() + at, size, from, first);
      at += size;
    }
  }
};

}  // namespace

std::size_t block_between(int from, int to, std::size_t count, int ranks, bool ragged) {
  if (!ragged) return count;
  const auto n = static_cast<std::size_t>(ranks);
  return count * (2 * (static_cast<std::size_t>(from + to) % n) + 1) / n;
}

void prepare(const Work& work, std::uint32_t seed) {
  with_element(work.element, [&]<class T>(T) { Verifier<T>{work, seed}.prepare(); });
}

std::int64_t count_wrong(const Work& work, std::uint32_t seed) {
  return with_element(work.element, [&]<class T>(T) {
    Verifier<T> verifier{work, seed};
    verifier.check();
    return verifier.wrong;
  });
}

}  // namespace harness
