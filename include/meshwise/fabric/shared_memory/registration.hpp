// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/address_map.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"
#include "meshwise/fabric/shared_memory/system_text.hpp"

namespace meshwise::detail {

/// Buffers of the user that all ranks can address though they were allocated elsewhere: their pages are exchanged for
/// pages of the arena. The addresses that the user knows and those in the arena are the same memory from then on.
///
/// Whole pages are exchanged, with whatever lies in them beside the buffer. Rules for the user:
/// * While `add` and `remove` run, nobody writes into those pages, in another thread or through a device: what is
///   written would be lost. Buffers that begin and end at page boundaries share no page with anything.
/// * `remove` comes before the buffer is freed. (The memory of the C library survives the contrary, and `add` and
///   `remove` see it; but until then a new buffer at the same addresses would be taken for the old one, and allocators
///   that ask the system to clear freed pages do not get them cleared.)
/// * A child that is forked shares these pages instead of having a copy; locks on them (mlock), advice about them and
///   their registration with devices, which stays with the old pages, are lost.
///
/// Ordering: one thread at a time. Lifetime: within that of the space; the destructor removes what is left.
class Registrations {
 public:
  explicit Registrations(Space& space)
      : space_(space), arena_(space.arena()), page_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) {}
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  ~Registrations() {
    // A buffer that cannot be given pages of its own keeps those of the arena: what maps them keeps them alive.
    const std::string now = entries_.empty() ? std::string() : system_text("/proc/self/maps");
    for (const Entry& entry : entries_) {
      if (!now.empty() && give_own_pages(entry, now) == 0) arena_.release(entry.block, entry.end - entry.begin);
    }
  }

  /// Makes a buffer addressable for all ranks; its contents stay. Nothing is done for one without bytes, or in an
  /// arena.
  ///
  /// Cost: a copy, and a block of the arena: 1.1 ms per MiB.
  /// Errors: `invalid_argument` for null with bytes, for memory that is not private, readable and writable throughout,
  /// for stacks in use, and for a buffer with pages that are registered already; `out_of_memory`. The buffer is as
  /// before.
  void add(void* data, std::size_t bytes) {
    const std::uint64_t begin = address(data);
    if (bytes == 0 || space_.addressable(data, bytes)) {
      unchanged_.push_back(data);
      return;
    }
    if (data == nullptr)
      fail(registering, "a buffer", "null with " + std::to_string(bytes) + " bytes", "pass its address");
    if (begin + bytes < begin)
      fail(registering, "a buffer", text(data, bytes) + ", past the last address", "pass its size");
    Entry entry;
    entry.data = begin;
    entry.bytes = bytes;
    entry.begin = begin / page_ * page_;
    entry.end = (begin + bytes + page_ - 1) / page_ * page_;
    const std::string now = address_text(registering);
    check_others(entry, now);
    check(entry, now);
    entries_.reserve(entries_.size() + 1);  // from here on there are no errors but those that are undone

    // The same place within a huge page as the buffer has, so that the system can use huge pages for both addresses.
    const std::uint64_t huge = std::uint64_t{2} << 20, whole = entry.end - entry.begin;
    entry.block = static_cast<std::byte*>(whole < huge ? arena_.allocate(whole, page_)
                                                       : arena_.allocate(whole, huge, entry.begin % huge));
    if (entry.block == nullptr) {
      lacking(registering, text(data, bytes) + ": no memory for its pages: " + system_error(arena_.error()));
    }
    if (const int error = copy_in(entry)) {
      arena_.release(entry.block, whole);
      lacking(registering, text(data, bytes) + ": its pages could not be copied: " + system_error(error));
    }
    if (const int error = exchange(entry)) {
      arena_.release(entry.block, whole);
      lacking(registering, text(data, bytes) + ": its pages could not be exchanged: " + system_error(error));
    }
    std::size_t at = 0;
    while (at < entries_.size() && entries_[at].begin < entry.begin) ++at;
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at), entry);
  }

  /// Gives a buffer private pages again; its contents stay. False if it is not registered. What has been freed in the
  /// meantime is left alone. Cost: a copy. Errors: `out_of_memory`, and the buffer stays registered.
  bool remove(const void* data) {
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      if (entries_[k].data != address(data)) continue;
      if (const int error = give_own_pages(entries_[k], address_text(deregistering))) {
        lacking(deregistering,
                text(data, entries_[k].bytes) + ": no pages of its own could be had: " + system_error(error));
      }
      forget(k);
      return true;
    }
    for (std::size_t k = 0; k < unchanged_.size(); ++k) {
      if (unchanged_[k] != data) continue;
      unchanged_.erase(unchanged_.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    }
    return false;
  }

  /// The address in the arena at which all ranks see these bytes; null if they are not all part of one registered
  /// buffer.
  /// Cost: a comparison for the buffer that the last question was about, else a binary search.
  const void* alias(const void* data, std::size_t bytes) const {
    if (entries_.empty()) return nullptr;
    const std::uint64_t at = address(data);
    if (last_ >= entries_.size() || !holds(entries_[last_], at, bytes)) {
      std::size_t low = 0, high = entries_.size();  // the last one that begins at or before it
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (entries_[middle].data <= at) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low == 0 || !holds(entries_[low - 1], at, bytes)) return nullptr;
      last_ = low - 1;
    }
    return entries_[last_].block + (at - entries_[last_].begin);
  }

  /// How many buffers have pages of the arena.
  std::size_t size() const { return entries_.size(); }

 private:
  static constexpr const char* registering = "registering a buffer";
  static constexpr const char* deregistering = "deregistering a buffer";

  struct Entry {
    std::uint64_t data = 0;
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;  ///< the pages
    std::uint64_t end = 0;
    std::byte* block = nullptr;  ///< what has taken their place
  };

  static std::uint64_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

  static std::string hexadecimal(std::uint64_t at) {
    char text[32];
    std::snprintf(text, sizeof(text), "%#llx", static_cast<unsigned long long>(at));
    return text;
  }

  static std::string text(const void* data, std::size_t bytes) {
    return std::to_string(bytes) + " bytes at " + hexadecimal(address(data));
  }

  [[noreturn]] static void lacking(const char* verb, const std::string& found) {
    Report report;
    report.code = Code::out_of_memory;
    report.operation = verb;
    report.found = found;
    report.remedy =
        "register less, or raise the limits of memory, mappings (vm.max_map_count) and open files (ulimit -n)";
    throw Error(std::move(report));
  }

  static bool holds(const Entry& entry, std::uint64_t at, std::uint64_t bytes) {
    return at - entry.data <= entry.bytes && bytes <= entry.bytes - (at - entry.data);
  }

  /// Whether exchanging the pages can work.
  void check(const Entry& entry, const std::string& now) const {
    const auto buffer = [&] { return text(reinterpret_cast<const void*>(entry.data), entry.bytes); };
    const auto copy = "register heap memory, and copy what lies elsewhere into it";
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* stack = nullptr;
      std::size_t size = 0;
      pthread_attr_getstack(&attributes, &stack, &size);
      pthread_attr_destroy(&attributes);
      if (entry.begin < address(stack) + size && address(stack) < entry.end) {
        fail(registering, "memory that is no stack", buffer() + " on the stack of this thread", copy);
      }
    }
    std::uint64_t at = entry.begin;
    for (const AddressRange& range : address_ranges(now, entry.begin, entry.end)) {
      if (range.begin != at) break;
      if (range.name == "[stack]") {
        fail(registering, "memory that is no stack", buffer() + " on the stack of the main thread", copy);
      }
      if (range.access != "rw-p") {
        fail(registering, "private memory that can be read and written (rw-p)",
             buffer() + ", where " + hexadecimal(range.begin) + " is " + range.access, copy);
      }
      if (range.name.rfind("/anon_hugepage", 0) == 0) {
        fail(registering, "memory in pages of the usual size", buffer() + " in explicit huge pages (MAP_HUGETLB)",
             "allocate it without them, or from the memory of the communicator");
      }
      at = range.end;
    }
    if (at < entry.end) {
      fail(registering, "a buffer of which every page exists", buffer() + ", of which " + hexadecimal(at) + " does not",
           "pass its address and size");
    }
  }

  /// Refuses pages that another buffer has; forgets buffers that have been freed.
  void check_others(const Entry& entry, const std::string& now) {
    for (std::size_t k = 0; k < entries_.size();) {
      const Entry& other = entries_[k];
      if (other.end <= entry.begin || entry.end <= other.begin) {
        ++k;
      } else if (exchanged(other, now).empty()) {
        forget(k);
      } else {
        const bool same = other.data < entry.data + entry.bytes && entry.data < other.data + other.bytes;
        fail(registering, "pages of which none is registered",
             text(reinterpret_cast<const void*>(entry.data), entry.bytes) + ", " +
                 (same ? "part of which is" : "which shares a page with others that are") + ": " +
                 text(reinterpret_cast<const void*>(other.data), other.bytes),
             same ? "deregister buffers before they are freed or registered anew"
                  : "align buffers to pages, or register one range that holds both");
      }
    }
  }

  /// What the system says of the addresses. It cannot always be asked; then nothing can be known to be free.
  static std::string address_text(const char* verb) {
    std::string text = system_text("/proc/self/maps");
    if (text.empty()) lacking(verb, "what lies at its addresses could not be read from /proc/self/maps");
    return text;
  }

  /// Those parts of a buffer's pages that are pages of the arena still.
  std::vector<AddressRange> exchanged(const Entry& entry, const std::string& text) const {
    std::vector<AddressRange> found;
    struct stat file {};
    fstat(arena_.descriptor(), &file);
    for (const AddressRange& range : address_ranges(text, entry.begin, entry.end)) {
      if (range.is_part_of(file, arena_.offset_of(entry.block) + (range.begin - entry.begin))) found.push_back(range);
    }
    return found;
  }

  void forget(std::size_t k) {
    arena_.release(entries_[k].block, entries_[k].end - entries_[k].begin);
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(k));
  }

  // The system copies, and is asked directly: what else lies in these pages may be memory that sanitizers guard.

  /// Both return 0 or the error of the system.
  int copy_in(const Entry& entry) const {
    const NoFileSizeSignal guard;
    const std::uint64_t offset = arena_.offset_of(entry.block);
    for (std::uint64_t at = entry.begin; at < entry.end;) {
      const long done = syscall(SYS_pwrite64, arena_.descriptor(), at, entry.end - at, offset + (at - entry.begin));
      if (done > 0) {
        at += static_cast<std::uint64_t>(done);
      } else if (done == 0 || errno != EINTR) {
        return done == 0 ? EIO : errno;
      }
    }
    return 0;
  }

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

  int exchange(const Entry& entry) const {
    const std::uint64_t bytes = entry.end - entry.begin, offset = arena_.offset_of(entry.block);
    if (map(entry.begin, bytes, MAP_SHARED | MAP_FIXED, arena_.descriptor(), offset) == -1) {
      const int error = errno;
      // Some systems have removed the old pages by then.
      std::vector<unsigned char> resident(bytes / page_);
      if (mincore(reinterpret_cast<void*>(entry.begin), bytes, resident.data()) != 0 && errno == ENOMEM &&
          map(entry.begin, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != -1) {
        copy_out(offset, bytes, entry.begin);
      }
      return error;
    }
    madvise(reinterpret_cast<void*>(entry.begin), bytes, MADV_HUGEPAGE);
    madvise(reinterpret_cast<void*>(entry.begin), bytes, Arena::populate_write);
    return 0;
  }

  int give_own_pages(const Entry& entry, const std::string& now) const {
    for (const AddressRange& range : exchanged(entry, now)) {
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

  Space& space_;
  Arena& arena_;
  const std::uint64_t page_;
  std::vector<Entry> entries_;          ///< by address; their pages do not overlap
  std::vector<const void*> unchanged_;  ///< registered, but there was nothing to do
  mutable std::size_t last_ = 0;        ///< the entry that the last question was about
};

}  // namespace meshwise::detail
