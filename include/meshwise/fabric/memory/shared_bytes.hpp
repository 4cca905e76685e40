// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "meshwise/fabric/memory/job.hpp"

namespace meshwise::detail {

/// Memory of one rank that the others address: grows to what the largest call needs, and is kept.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
  ~SharedBytes() {
    if (memory_ != nullptr) job_->release(memory_);
  }

  /// At least so many bytes, whose content may be anything. job: outlives this, the same at every call.
  std::byte* take(Job& job, std::size_t bytes) {
    if (bytes <= size_) return memory_;
    if (memory_ != nullptr) job.release(memory_);
    memory_ = nullptr;
    size_ = 0;
    memory_ = static_cast<std::byte*>(job.allocate(bytes));
    size_ = bytes;
    job_ = &job;
    return memory_;
  }

  std::byte* data() const { return memory_; }

  /// Leaves the memory to the job, until that ends: somebody may still write into it.
  void abandon() noexcept {
    if (memory_ != nullptr) job_->bury(memory_, [](void*) { return false; });
    memory_ = nullptr;
    size_ = 0;
  }

 private:
  Job* job_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace meshwise::detail
