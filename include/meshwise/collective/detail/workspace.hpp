// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "meshwise/core/detail/owned_any.hpp"
#include "meshwise/core/memory.hpp"

namespace meshwise::detail {

/// Memory that only grows, so that a call which comes again does not allocate.
class Staging {
 public:
  /// At least so many bytes, not initialised, aligned to a cache line. What was there before is lost when it grows.
  /// source: of memory that the other ranks address, which lives longer than this; null: any memory will do.
  std::byte* take(std::size_t bytes, const MemorySource* source) {
    if (bytes > size_) grow(bytes, source);
    return memory_;
  }

  Staging() = default;
  Staging(Staging&& other) noexcept { *this = std::move(other); }
  Staging& operator=(Staging&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(source_, other.source_);
    return *this;
  }
  ~Staging() {
    if (memory_ != nullptr) source_.release(source_.context, memory_, size_);
  }

 private:
  static constexpr std::size_t line = 64;

  [[gnu::noinline]] void grow(std::size_t bytes, const MemorySource* source) {
    *this = Staging();
    const std::size_t whole = (bytes + line - 1) / line * line;
    // What is not backed may not be written: it is for tensors that nobody looks at.
    source_ = source != nullptr && source->backed ? *source : host_memory();
    void* const memory = source_.allocate(source_.context, whole, line);
    if (memory == nullptr) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    size_ = whole;
  }

  MemorySource source_{};
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// What collectives need besides the caller's buffers. Serves one of them at a time: the blocking calls of a
/// communicator share one, every operation in flight and every prepared one has its own.
struct Workspace {
  Staging input;                     ///< converted or scaled contributions
  Staging output;                    ///< results before they are converted back
  std::vector<std::size_t> offsets;  ///< where blocks of different sizes begin
  OwnedAny splits;                   ///< the last redistribution: a Splits, see redistribute.hpp
};

}  // namespace meshwise::detail
