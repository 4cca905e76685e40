// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/shared_memory/free_ranges.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"

namespace meshwise::detail {

/// The allocator of the memory that one rank shares with all others. What is free or not is known to this rank only:
/// the others may write into blocks, not break the books.
///
/// Memory is set aside before a block is handed out, so that a system without space is an error here and never a signal
/// later, in whoever touches it first. Blocks of less than 1 MiB come from pages that stay, set aside 2 MiB at a time;
/// larger ones return to the system when they are released. Those of 2 MiB or more begin at a multiple of it. They and
/// the pages of small ones are huge wherever the system has such, whatever its policy for shared memory: a peer then
/// takes one page fault for 2 MiB, not 512, and processes that share a core keep their translations over a change.
/// (Measured with 4 ranks on 2 cores: collectives of 32 KiB take 0.65 of the time, those of 256 KiB too.)
///
/// Cost of a block that is no reuse: 0.4 ms per MiB to reserve and clear it, 0.9 for huge pages (which save each peer
/// 0.4 at its first touch).
/// Ordering: any thread. Lifetime: the pages and the descriptor belong to somebody else, and outlive it. In a forked
/// child nothing can be allocated, and what is released there stays as it is: the memory is its parent's.
class Arena {
 public:
  /// Below it, blocks share pages.
  static constexpr std::uint64_t large_bytes = std::uint64_t{1} << 20;
  /// Kinds of madvise by number, as the C library may be older than the system.
  static constexpr int populate_write = 23;  // Linux 5.14
  static constexpr int collapse = 25;        // Linux 6.1

  /// descriptor: of the file that is mapped at base, with all its bytes. The first block allocated lies at base.
  Arena(int descriptor, std::byte* base, std::uint64_t bytes)
      : owner_(getpid()),
        descriptor_(descriptor),
        base_(base),
        bytes_(bytes),
        page_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))),
        border_(bytes < 16 * arena_unit ? arena_unit : bytes / 8 / arena_unit * arena_unit),
        little_(0, border_),
        large_(border_, bytes) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// For a Heap over this arena; lifetime: the arena must stay where it is and outlive it.
  MemorySource source() {
    return {
        [](void* context, std::size_t bytes, std::size_t alignment) -> void* {
          return static_cast<Arena*>(context)->allocate(bytes, alignment);
        },
        [](void* context, void* memory, std::size_t bytes) { static_cast<Arena*>(context)->release(memory, bytes); },
        this};
  }

  /// A block that all ranks can address, not initialised; null when the system has no space (see `error`).
  /// alignment: a power of two, at most 2 MiB. phase: how far behind a multiple of it the block begins, in whole pages.
  void* allocate(std::size_t bytes, std::size_t alignment, std::size_t phase = 0) noexcept {
    if (getpid() != owner_) return refuse(EPERM);
    if (bytes == 0) bytes = 1;
    if (bytes > bytes_ || alignment > arena_unit || (alignment & (alignment - 1)) != 0 || phase % page_ != 0) {
      return refuse(ENOMEM);
    }
    try {
      if (bytes < large_bytes) {
        if (void* const block = allocate_little(bytes, alignment < 64 ? 64 : alignment, phase)) return block;
      }
      return allocate_large(bytes, alignment, phase);
    } catch (const std::bad_alloc&) {
      return refuse(ENOMEM);
    }
  }

  /// Takes back what `allocate` gave; bytes: as it was asked for. Null is fine.
  void release(void* memory, std::size_t bytes) noexcept {
    if (memory == nullptr || getpid() != owner_) return;
    if (bytes == 0) bytes = 1;
    const std::uint64_t offset = offset_of(memory);
    if (offset >= border_) {
      bytes = round(bytes, page_);
      give_back_pages(descriptor_, offset, bytes);
#if defined(MADV_DONTDUMP)
      madvise(base_ + offset, bytes, MADV_DONTDUMP);
#endif
    } else {
      bytes = round(bytes, 64);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    (offset >= border_ ? large_ : little_).put(offset, bytes);
  }

  /// Memory of the system that is set aside for this arena now, in bytes.
  std::size_t reserved() const {
    struct stat now {};
    return fstat(descriptor_, &now) == 0 ? static_cast<std::size_t>(now.st_blocks) * 512 : 0;
  }

  /// Why `allocate` last gave null: the number of a system error, such as ENOSPC; 0: it never did.
  int error() const { return error_.load(std::memory_order_relaxed); }

  int descriptor() const { return descriptor_; }
  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t offset_of(const void* memory) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  }

 private:
  static constexpr std::uint64_t arena_unit = std::uint64_t{2} << 20;
  static constexpr std::uint64_t populate_bytes = std::uint64_t{64} << 10;

  static std::uint64_t round(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

  void* refuse(int error) noexcept {
    error_.store(error, std::memory_order_relaxed);
    return nullptr;
  }

  /// Null where the part for small blocks is full, or there is no space.
  void* allocate_little(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t phase) {
    bytes = round(bytes, 64);
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::uint64_t offset = little_.take(bytes, alignment, phase);
    if (offset == FreeRanges::none) return nullptr;
    if (offset + bytes > backed_) {
      const std::uint64_t least = round(offset + bytes, page_);
      std::uint64_t end = round(least, arena_unit) < border_ ? round(least, arena_unit) : border_;
      if (!back(backed_, end)) {
        end = least;
        if (!back(backed_, end)) {
          little_.put(offset, bytes);
          return nullptr;
        }
      }
      backed_ = end;
    }
    return base_ + offset;
  }

  void* allocate_large(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t phase) {
    bytes = round(bytes, page_);
    if (alignment < page_) alignment = page_;
    if (bytes >= arena_unit && phase == 0) alignment = arena_unit;
    std::uint64_t offset = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      offset = large_.take(bytes, alignment, phase);
    }
    if (offset == FreeRanges::none) return refuse(ENOMEM);
    // Without the lock: nobody else has this range.
    if (back(offset, offset + bytes)) return base_ + offset;
    const std::lock_guard<std::mutex> lock(mutex_);
    large_.put(offset, bytes);
    return nullptr;
  }

  /// Has memory set aside, and touched first by this process, so that it lies in its part of the machine and costs it
  /// no page faults later.
  bool back(std::uint64_t begin, std::uint64_t end) {
    if (const int error = reserve_pages(descriptor_, begin, end - begin)) {
      refuse(error);
      return false;
    }
    // All these are wishes.
    std::byte* const at = base_ + begin;
#if defined(MADV_DODUMP)
    madvise(at, end - begin, MADV_DODUMP);
#endif
    if (end - begin < populate_bytes) return true;
    madvise(at, end - begin, populate_write);
    const std::uint64_t from = round(begin, arena_unit), to = end / arena_unit * arena_unit;
    if (to > from) madvise(base_ + from, to - from, collapse);
    return true;
  }

  const pid_t owner_;
  const int descriptor_;
  std::byte* const base_;
  const std::uint64_t bytes_;
  const std::uint64_t page_;
  const std::uint64_t border_;  ///< small blocks below, large ones above
  std::mutex mutex_;            ///< guards all below
  std::uint64_t backed_ = 0;    ///< below the border: where what is set aside ends
  FreeRanges little_;
  FreeRanges large_;
  std::atomic<int> error_{0};
};

}  // namespace meshwise::detail
