// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/fabric/shared_memory/address_map.hpp"
#include "meshwise/fabric/shared_memory/arena.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"

namespace meshwise::detail {

/// Pages at [begin, end) of the address space, and as many bytes of the arena.
struct PageBlock {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::byte* block = nullptr;
};

/// How pages of a process become pages of its arena, at the addresses where they are, and private ones again.
///
/// The system copies, and is asked directly: what else lies in these pages may be memory that sanitizers guard.
class PageExchange {
 public:
  explicit PageExchange(Arena& arena) : arena_(arena), page_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) {}

  std::uint64_t page() const { return page_; }

  /// Those parts of the addresses that are pages of the block still. text: of /proc/self/maps.
  std::vector<AddressRange> exchanged(const PageBlock& pages, const std::string& text) const {
    std::vector<AddressRange> found;
    struct stat file {};
    fstat(arena_.descriptor(), &file);
    for (const AddressRange& range : address_ranges(text, pages.begin, pages.end)) {
      if (range.is_part_of(file, arena_.offset_of(pages.block) + (range.begin - pages.begin))) found.push_back(range);
    }
    return found;
  }

  /// Whether all of [begin, end), a part of the addresses, is.
  bool exchanged_throughout(const PageBlock& pages, std::uint64_t begin, std::uint64_t end,
                            const std::string& text) const {
    std::uint64_t bytes = 0;
    for (const AddressRange& range : exchanged({begin, end, pages.block + (begin - pages.begin)}, text)) {
      bytes += range.end - range.begin;
    }
    return bytes == end - begin;
  }

  // The others return 0 or the error of the system.

  /// What lies at the addresses goes to the block as well.
  int copy_in(const PageBlock& pages) const {
    const NoFileSizeSignal guard;
    const std::uint64_t offset = arena_.offset_of(pages.block);
    for (std::uint64_t at = pages.begin; at < pages.end;) {
      const long done = syscall(SYS_pwrite64, arena_.descriptor(), at, pages.end - at, offset + (at - pages.begin));
      if (done > 0) {
        at += static_cast<std::uint64_t>(done);
      } else if (done == 0 || errno != EINTR) {
        return done == 0 ? EIO : errno;
      }
    }
    return 0;
  }

  /// The pages of the block take the place of those at the addresses. After an error these are private, with the
  /// contents of the block if they were gone.
  int exchange(const PageBlock& pages) const {
    const std::uint64_t bytes = pages.end - pages.begin, offset = arena_.offset_of(pages.block);
    if (map(pages.begin, bytes, MAP_SHARED | MAP_FIXED, arena_.descriptor(), offset) == -1) {
      const int error = errno;
      // Some systems have removed the old pages by then.
      std::vector<unsigned char> resident(bytes / page_);
      if (mincore(reinterpret_cast<void*>(pages.begin), bytes, resident.data()) != 0 && errno == ENOMEM &&
          map(pages.begin, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != -1) {
        copy_out(offset, bytes, pages.begin);
      }
      return error;
    }
    madvise(reinterpret_cast<void*>(pages.begin), bytes, MADV_HUGEPAGE);
    madvise(reinterpret_cast<void*>(pages.begin), bytes, Arena::populate_write);
    return 0;
  }

  /// What is exchanged still becomes private again, and keeps its contents.
  int give_own_pages(const PageBlock& pages, const std::string& now) const {
    for (const AddressRange& range : exchanged(pages, now)) {
      // Filled elsewhere and moved as a whole: at no time is the content missing.
      const std::uint64_t bytes = range.end - range.begin;
      const long fresh = map(0, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (fresh == -1) return errno;
      const auto from = static_cast<std::uint64_t>(fresh);
      int error = copy_out(range.offset, bytes, from);
      if (error == 0 && syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, range.begin) == -1) {
        error = errno;
      }
      if (error != 0) {
        syscall(SYS_munmap, from, bytes);
        return error;
      }
    }
    return 0;
  }

 private:
  int copy_out(std::uint64_t offset, std::uint64_t bytes, std::uint64_t to) const {
    for (std::uint64_t at = 0; at < bytes;) {
      const long done = syscall(SYS_pread64, arena_.descriptor(), to + at, bytes - at, offset + at);
      if (done > 0) {
        at += static_cast<std::uint64_t>(done);
      } else if (done == 0 || errno != EINTR) {
        return done == 0 ? EIO : errno;
      }
    }
    return 0;
  }

  static long map(std::uint64_t at, std::uint64_t bytes, int flags, int descriptor, std::uint64_t offset) {
    return syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, offset);
  }

  Arena& arena_;
  const std::uint64_t page_;
};

}  // namespace meshwise::detail
