// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/memory.hpp"

namespace meshwise {

/// Memory that is addresses only: a heap over it counts what a program would need, and nobody may read or write it.
///
/// Cost: one page per block of the heap, for its header, and two mappings, of which Linux allows a process about 65000.
/// The rest is reserved without access, so that whoever touches it after all is ended at once by the system.
/// Ordering: one thread at a time. Lifetime: stays where it is, and outlives the heap and its storage.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;

  MemorySource source() { return {&allocate, &release, this, false}; }

  /// Whether an address is part of a block that has been allocated, or is its end: where a part of it without elements
  /// may begin.
  bool holds(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    for (const Block& block : blocks_) {
      if (block.begin <= at && at < block.begin + block.bytes) return true;
    }
    return false;
  }

 private:
  struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };

  static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

  // The header of the block lies at the end of the first page, the only one that may be touched.
  static void* allocate(void* context, std::size_t bytes, std::size_t) {
    auto& self = *static_cast<ReservedMemory*>(context);
    // One byte more than asked for: the end of one block is not the beginning of another one.
    const std::size_t header = sizeof(detail::BlockHeader),
                      whole = (page() + bytes - header + page()) / page() * page();
    void* const memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (mprotect(memory, page(), PROT_READ | PROT_WRITE) != 0) {
      munmap(memory, whole);
      return nullptr;
    }
    auto* const begin = static_cast<std::byte*>(memory);
    self.blocks_.push_back({begin, whole});
    return begin + page() - header;
  }

  static void release(void* context, void* memory, std::size_t) {
    auto& self = *static_cast<ReservedMemory*>(context);
    const auto* const at = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < self.blocks_.size(); ++i) {
      const Block block = self.blocks_[i];
      if (at < block.begin || at >= block.begin + block.bytes) continue;
      self.blocks_.erase(i);
      munmap(block.begin, block.bytes);
      return;
    }
  }

  detail::List<Block> blocks_;
};

}  // namespace meshwise
