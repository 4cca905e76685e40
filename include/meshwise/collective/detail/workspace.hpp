// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace meshwise::detail {

/// Memory that only grows, so that a call which comes again does not allocate.
class Staging {
 public:
  /// At least so many bytes, not initialised, aligned to a cache line. What was there before is lost when it grows.
  std::byte* take(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

struct Splits;

/// What collectives need besides the caller's buffers. Serves one of them at a time: the blocking calls of a
/// communicator share one, every operation in flight and every prepared one has its own.
struct Workspace {
  Staging input;                     ///< converted or scaled contributions
  Staging output;                    ///< results before they are converted back
  std::vector<std::size_t> offsets;  ///< where blocks of different sizes begin
  std::shared_ptr<Splits> splits;    ///< the last redistribution; redistribute.hpp knows what it is
};

}  // namespace meshwise::detail
