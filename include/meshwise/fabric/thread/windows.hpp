// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  /// capacity: bytes of data in a window; 0: there are no windows.
  Windows(int ranks, std::size_t capacity) : capacity_(capacity), stride_(stride(capacity)) {
    if (capacity == 0) return;
    const auto number = static_cast<std::size_t>(ranks);
    lines_.reset(new Line[number * depth * stride_ / sizeof(Line)]);
    for (std::size_t i = 0; i < number * depth; ++i) new (&lines_[i * (stride_ / sizeof(Line))]) Window{};
    finished_.reset(new Finished[number]);
  }

  std::size_t capacity() const { return capacity_; }

  /// The window of a rank for an operation.
  Window& at(int rank, std::uint64_t number) {
    const std::size_t index = static_cast<std::size_t>(rank) * depth + number % depth;
    return *std::launder(reinterpret_cast<Window*>(reinterpret_cast<std::byte*>(lines_.get()) + index * stride_));
  }

  /// The last operation of this kind that a rank has finished: it reads nothing of earlier ones any more.
  Word& finished(int rank) { return finished_[static_cast<std::size_t>(rank)].number; }

 private:
  struct alignas(128) Line {  // two of the machine's: they are fetched in pairs
    std::byte bytes[128];
  };
  struct alignas(128) Finished {
    Word number{0};
  };

  static std::size_t stride(std::size_t capacity) {
    return (sizeof(Window) + capacity + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line);
  }

  std::size_t capacity_;
  std::size_t stride_;
  std::unique_ptr<Line[]> lines_;
  std::unique_ptr<Finished[]> finished_;
};

}  // namespace meshwise::detail
