// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "../support/copy_around.hpp"
#include "clock.hpp"
#include "crew.hpp"
#include "meeting.hpp"

namespace harness {

/// What the memory can do: one thread on each core copies an array of its own, all at once, either as memcpy does or
/// around the caches, whichever is faster.
///
/// Made once; `rate` is asked beside each point. Nobody else of the job should be busy meanwhile.
class CopyLimit {
 public:
  static constexpr std::size_t least = std::size_t{4} << 10;  ///< bytes of a core's copy
  static constexpr std::size_t most = std::size_t{64} << 20;  ///< longer ones go no faster and no slower

  struct Rates {
    double cached = 0;  ///< bytes read plus bytes written per second, all cores together
    double around = 0;
    double best() const { return std::max(cached, around); }
  };

  /// cores: as usable_core_numbers says. at_most: the number of copying threads, such as that of the ranks.
  explicit CopyLimit(const std::vector<int>& cores, std::size_t at_most)
      : cores_(cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(std::min(cores.size(), at_most))),
        arrays_(2 * cores_.size()) {}

  std::size_t threads() const { return cores_.size(); }

  /// What a copy of so many bytes, read plus written by all cores together, is done at. About 5 ms, or three copies.
  Rates rate(double bytes) {
    const double part = bytes / 2 / static_cast<double>(cores_.size());
    const auto size = static_cast<std::size_t>(std::clamp(part, double{least}, double{most})) / 256 * 256;
    Rates rates;
    rates.cached = measure(size, [](std::byte* to, const std::byte* from, std::size_t n) { std::memcpy(to, from, n); });
    if (size >= std::size_t{256} << 10) rates.around = measure(size, copy_around);
    return rates;
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  struct Array {
    std::unique_ptr<std::byte, Free> data;
    std::size_t bytes = 0;

    std::byte* reach(std::size_t wanted) {
      if (bytes < wanted) {
        data.reset(static_cast<std::byte*>(std::aligned_alloc(std::size_t{2} << 20, (wanted | ((2U << 20) - 1)) + 1)));
        if (data == nullptr) throw std::bad_alloc();
        madvise(data.get(), wanted, MADV_HUGEPAGE);  // as the library's heap is; without it a copy is slower
        std::memset(data.get(), 1, wanted);
        bytes = wanted;
      }
      return data.get();
    }
  };

  template <class Copy>
  double measure(std::size_t size, const Copy& copy) {
    const int series = size < (std::size_t{16} << 20) ? 5 : 3;
    const auto ranks = static_cast<std::uint32_t>(cores_.size());
    const int batch = static_cast<int>(std::max<std::size_t>(1, (std::size_t{1} << 20) / size));
    auto meeting = std::make_unique<Meeting>();
    std::vector<std::int64_t> took(cores_.size() * static_cast<std::size_t>(series));
    run_on_cores(cores_, [&](int member) {
      std::byte* const from = arrays_[2 * static_cast<std::size_t>(member)].reach(size);
      std::byte* const to = arrays_[2 * static_cast<std::size_t>(member) + 1].reach(size);
      copy(to, from, size);
      for (int k = 0; k < series; ++k) {
        meeting->meet(ranks, false);
        const std::int64_t start = nanoseconds();
        for (int i = 0; i < batch; ++i) {
          copy(to, from, size);
          asm volatile("" ::"r"(to) : "memory");
        }
        took[static_cast<std::size_t>(k) * ranks + static_cast<std::size_t>(member)] = nanoseconds() - start;
      }
    });
    double best = 0;  // others on the cores make it slower, nothing makes it faster
    for (int k = 0; k < series; ++k) {
      const auto begin = took.begin() + k * static_cast<std::ptrdiff_t>(ranks);
      const std::int64_t slowest = std::max<std::int64_t>(1, *std::max_element(begin, begin + ranks));
      best = std::max(best, 2.0 * static_cast<double>(size) * batch * ranks * 1e9 / static_cast<double>(slowest));
    }
    return best;
  }

  std::vector<int> cores_;
  std::vector<Array> arrays_;
};

}  // namespace harness
