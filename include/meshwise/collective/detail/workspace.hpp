// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "meshwise/core/detail/owned_any.hpp"

namespace meshwise::detail {

/// Memory that only grows, so that a call which comes again does not allocate.
class Staging {
 public:
  /// At least so many bytes, not initialised, aligned to a cache line. What was there before is lost when it grows.
  std::byte* take(std::size_t bytes) {
    if (bytes > size_) {
      *this = Staging();
      memory_ = static_cast<std::byte*>(::operator new(bytes, alignment));
      size_ = bytes;
    }
    return memory_;
  }

  Staging() = default;
  Staging(Staging&& other) noexcept { *this = std::move(other); }
  Staging& operator=(Staging&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Staging() {
    if (memory_ != nullptr) ::operator delete(memory_, alignment);
  }

 private:
  static constexpr std::align_val_t alignment{64};
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
