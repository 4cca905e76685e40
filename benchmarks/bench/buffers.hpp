// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/memory.hpp"

namespace harness {

/// Input and output of one rank, as long as the longest point needs.
class Buffers {
 public:
  /// foreign: as a program that knows nothing of the library would get them; otherwise memory that all ranks reach.
  Buffers(meshwise::Communicator& world, bool foreign, std::size_t bytes)
      : foreign_(foreign),
        heap_(!foreign && world.endpoint().memory() != nullptr ? *world.endpoint().memory() : meshwise::host_memory()) {
    for (std::byte*& one : data_) {
      if (foreign) {
        one = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
        if (one == nullptr) throw std::bad_alloc();
        owned_.emplace_back(one);
      } else {
        stored_.push_back(heap_.allocate(bytes));
        one = stored_.back().data();
      }
      std::memset(one, 0, bytes);  // pages come from where their rank runs
    }
  }

  bool foreign() const { return foreign_; }
  std::byte* in() const { return data_[0]; }
  std::byte* out() const { return data_[1]; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };

  bool foreign_;
  meshwise::Heap heap_;
  std::vector<meshwise::Storage> stored_;
  std::vector<std::unique_ptr<std::byte, Free>> owned_;
  std::byte* data_[2] = {};
};

}  // namespace harness
