// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace meshwise::detail {

/// What the ranks of a group write for each other to read: per rank a ring of windows, each a sequence word, a hash of
/// the call, the length of the data, and the data beside them.
///
/// A window is written by its owner only, data first, then the word (release). It is written again `depth` operations
/// later, when everybody has finished the earlier one.
class Windows {
 public:
  using Word = std::atomic<std::uint64_t>;

  /// What stands before the data.
  struct Window {
    Word sequence{0};         ///< the number of the operation that it holds; written last
    std::uint64_t hash = 0;   ///< what kind of call that is
    std::uint64_t bytes = 0;  ///< of data

    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  };

  static constexpr std::size_t depth = 8;

  /// Above this group size reading everybody's window costs more than a schedule.
  static constexpr int most_ranks = 64;

  /// The bytes of data that a window of a group should hold. With more ranks than cores every wait is a change of
  /// threads, and one rendezvous is worth more.
  static constexpr std::size_t useful(int ranks, bool crowded) {
    return ranks > most_ranks ? 0 : crowded ? 8192 : 2048;
  }

  Windows() = default;

  /// The windows of a group in `memory`, of as many `bytes` as that function says, aligned to 128. capacity: bytes of
  /// data in a window; 0: there are no windows. fresh: nobody has made them there yet.
  Windows(void* memory, int ranks, std::size_t capacity, bool fresh)
      : capacity_(capacity), stride_(stride(capacity)), memory_(static_cast<std::byte*>(memory)) {
    if (capacity == 0) return;
    const auto number = static_cast<std::size_t>(ranks);
    finished_ = memory_ + number * depth * stride_;
    if (!fresh) return;
    for (std::size_t i = 0; i < number * depth; ++i) new (memory_ + i * stride_) Window{};
    for (std::size_t i = 0; i < number; ++i) new (finished_ + i * sizeof(Finished)) Finished{};
  }

  static std::size_t bytes(int ranks, std::size_t capacity) {
    if (capacity == 0) return 0;
    return static_cast<std::size_t>(ranks) * (depth * stride(capacity) + sizeof(Finished));
  }

  std::size_t capacity() const { return capacity_; }

  /// The window of a rank for an operation.
  Window& at(int rank, std::uint64_t number) {
    const std::size_t index = static_cast<std::size_t>(rank) * depth + number % depth;
    return *std::launder(reinterpret_cast<Window*>(memory_ + index * stride_));
  }

  /// The last operation of this kind that a rank has finished: it reads nothing of earlier ones any more.
  Word& finished(int rank) {
    return std::launder(reinterpret_cast<Finished*>(finished_))[static_cast<std::size_t>(rank)].number;
  }

 private:
  static constexpr std::size_t line = 128;  // two of the machine's: they are fetched in pairs
  struct alignas(line) Finished {
    Word number{0};
  };

  static std::size_t stride(std::size_t capacity) { return (sizeof(Window) + capacity + line - 1) / line * line; }

  std::size_t capacity_ = 0;
  std::size_t stride_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* finished_ = nullptr;
};

}  // namespace meshwise::detail
