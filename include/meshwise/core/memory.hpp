// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace meshwise {

/// The memory space of ordinary host memory.
struct Host {};

/// What memory is used for, as the ledger reports it.
enum class Category : std::uint8_t { parameters, gradients, optimizer, activations, communication, workspace };
inline constexpr int categories = 6;

constexpr const char* category_name(Category c) {
  constexpr const char* names[] = {"parameters", "gradients", "optimizer", "activations", "communication", "workspace"};
  return names[static_cast<int>(c)];
}

/// Bytes in use now, and the most there ever were.
struct Usage {
  std::size_t current = 0;
  std::size_t peak = 0;
};

/// Where a heap gets its memory from. A fabric whose peers address memory directly supplies its own.
struct MemorySource {
  void* (*allocate)(void* context, std::size_t bytes, std::size_t alignment);
  void (*release)(void* context, void* memory, std::size_t bytes);
  void* context = nullptr;
  bool backed = true;  ///< false: there are addresses only, which nobody may read or write; see ReservedMemory
};

/// Ordinary memory; blocks of 2 MiB or more ask for huge pages, which collectives need for full bandwidth.
inline MemorySource host_memory() {
  return {[](void*, std::size_t bytes, std::size_t alignment) -> void* {
            void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
#if defined(__linux__)
            if (memory != nullptr && alignment >= std::size_t{1} << 21) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
            return memory;
          },
          [](void*, void* memory, std::size_t) { std::free(memory); }, nullptr};
}

namespace detail {

struct HeapCore;

/// Stands in the 64 bytes before every allocation.
struct alignas(64) BlockHeader {
  HeapCore* heap;
  BlockHeader* next;     // in the free list
  std::size_t capacity;  // bytes after the header
  std::size_t bytes;     // bytes asked for
  std::size_t references;
  Category category;
  bool backed;
};

struct FreeList {
  std::size_t capacity;
  BlockHeader* head;
};

struct HeapCore {
  MemorySource source;
  std::array<Usage, categories> usage{};
  Usage total{};
  std::size_t live = 0;
  bool orphan = false;
  Category category = Category::activations;
  List<FreeList> free_lists;
  std::size_t recent = 0;  ///< the list that was used last

  // Eighths of a power of two: at most 12.5 % is wasted and sizes that differ little reuse each other's blocks.
  static std::size_t round_up(std::size_t bytes) {
    std::size_t step = 64;
    while (step * 16 <= bytes) step *= 2;
    return (bytes + step - 1) / step * step;
  }
  static std::size_t alignment(std::size_t capacity) {
    return capacity >= std::size_t{1} << 21 ? std::size_t{1} << 21 : 64;
  }
  FreeList& list_for(std::size_t capacity) {
    // What comes is mostly as large as what has just gone.
    if (recent < free_lists.size() && free_lists[recent].capacity == capacity) return free_lists[recent];
    for (recent = 0; recent < free_lists.size(); ++recent) {
      if (free_lists[recent].capacity == capacity) return free_lists[recent];
    }
    free_lists.push_back({capacity, nullptr});
    return free_lists.back();
  }
  void count(Category c, std::size_t bytes) {
    for (Usage* u : {&usage[static_cast<std::size_t>(c)], &total}) {
      u->current += bytes;
      if (u->current > u->peak) u->peak = u->current;
    }
  }
  [[noreturn]] void refuse(std::size_t bytes) const {
    Report report;
    report.code = Code::out_of_memory;
    report.operation = "Heap::allocate";
    report.found =
        std::to_string(bytes) + " bytes could not be had, " + std::to_string(total.current) + " bytes are in use";
    report.remedy = "use smaller batches or more ranks";
    throw Error(std::move(report));
  }
  BlockHeader* acquire(std::size_t bytes) {
    if (bytes > ~std::size_t{0} / 4) refuse(bytes);  // rounding up would overflow
    const std::size_t capacity = round_up(bytes == 0 ? 1 : bytes);
    FreeList& list = list_for(capacity);
    BlockHeader* block = list.head;
    if (block != nullptr) {
      list.head = block->next;
    } else {
      void* memory = source.allocate(source.context, capacity + sizeof(BlockHeader), alignment(capacity));
      if (memory == nullptr) refuse(bytes);
      block = ::new (memory) BlockHeader{};
      block->capacity = capacity;
      block->backed = source.backed;
    }
    block->heap = this;
    block->bytes = bytes;
    block->references = 1;
    block->category = category;
    count(category, bytes);
    ++live;
    return block;
  }
  void give_back(BlockHeader* block) {
    usage[static_cast<std::size_t>(block->category)].current -= block->bytes;
    total.current -= block->bytes;
    --live;
    FreeList& list = list_for(block->capacity);
    block->next = list.head;
    list.head = block;
    if (orphan && live == 0) {
      trim();
      delete this;
    }
  }
  void trim() {
    for (FreeList& list : free_lists) {
      while (list.head != nullptr) {
        BlockHeader* block = std::exchange(list.head, list.head->next);
        source.release(source.context, block, block->capacity + sizeof(BlockHeader));
      }
    }
  }
};

}  // namespace detail

/// Shared, reference-counted memory of one rank. Copies share; the count is not atomic: it belongs to its rank's
/// thread.
class Storage {
 public:
  Storage() = default;
  explicit Storage(detail::BlockHeader* block) : block_(block) {}
  Storage(const Storage& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) ++block_->references;
  }
  Storage(Storage&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Storage& operator=(const Storage& other) noexcept { return *this = Storage(other); }
  Storage& operator=(Storage&& other) noexcept {
    leave(std::exchange(block_, std::exchange(other.block_, nullptr)));
    return *this;
  }
  ~Storage() { leave(block_); }

  std::byte* data() const { return block_ == nullptr ? nullptr : reinterpret_cast<std::byte*>(block_ + 1); }
  std::size_t bytes() const { return block_ == nullptr ? 0 : block_->bytes; }
  bool unique() const { return block_ != nullptr && block_->references == 1; }
  /// Whether there is memory to be read and written, and not only counted.
  bool backed() const { return block_ == nullptr || block_->backed; }

 private:
  static void leave(detail::BlockHeader* block) noexcept {
    if (block != nullptr && --block->references == 0) block->heap->give_back(block);
  }

  detail::BlockHeader* block_ = nullptr;
};

/// The memory of one rank in one space: allocates, keeps what is returned for reuse, and counts by category.
///
/// Cost: after the first steps of a training loop no call reaches the operating system. Ordering: one thread at a time.
/// Lifetime: storage may outlive its heap. Errors: Error{out_of_memory} with the bytes asked for and in use.
class Heap {
 public:
  explicit Heap(MemorySource source = host_memory()) : core_(new detail::HeapCore{}) { core_->source = source; }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() {
    if (core_->live != 0) {
      core_->orphan = true;
    } else {
      core_->trim();
      delete core_;
    }
  }

  /// Memory of at least `bytes` bytes, aligned to 64, not initialised, counted in the current category.
  Storage allocate(std::size_t bytes) { return Storage(core_->acquire(bytes)); }
  /// Gives memory that is kept for reuse back to its source.
  void trim() { core_->trim(); }

  Usage usage(Category c) const { return core_->usage[static_cast<std::size_t>(c)]; }
  Usage total() const { return core_->total; }
  Category category() const { return core_->category; }
  /// Sets the category of later allocations and returns the one before; see CategoryScope.
  Category set_category(Category c) { return std::exchange(core_->category, c); }

 private:
  detail::HeapCore* core_;
};

/// Counts what is allocated during its life in one category.
class CategoryScope {
 public:
  CategoryScope(Heap& heap, Category c) : heap_(heap), before_(heap.set_category(c)) {}
  CategoryScope(const CategoryScope&) = delete;
  CategoryScope& operator=(const CategoryScope&) = delete;
  ~CategoryScope() { heap_.set_category(before_); }

 private:
  Heap& heap_;
  Category before_;
};

}  // namespace meshwise
