// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/address_map.hpp"
#include "meshwise/fabric/shared_memory/page_exchange.hpp"
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
/// Buffers may share pages: these change back with the last of them. A buffer that has only some of its pages in common
/// with others moves to a larger block of the arena together with these, which then have other aliases: they must not
/// be part of an unfinished operation.
///
/// Ordering: one thread at a time. Lifetime: within that of the space; the destructor removes what is left.
class Registrations {
 public:
  explicit Registrations(Space& space) : space_(space), arena_(space.arena()), pages_(arena_) {}
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  ~Registrations() {
    // A buffer that cannot be given pages of its own keeps those of the arena: what maps them keeps them alive.
    const std::string now = entries_.empty() ? std::string() : system_text("/proc/self/maps");
    for (std::size_t k = 0; k < entries_.size(); k = next_block(k)) {
      const PageBlock& pages = entries_[k].pages;
      if (!now.empty() && pages_.give_own_pages(pages, now) == 0) release(pages);
    }
  }

  /// Makes a buffer addressable for all ranks; its contents stay. Nothing is done for one without bytes, or in an
  /// arena.
  ///
  /// Cost: a copy, and a block of the arena: 1.1 ms per MiB; together with buffers that have some of its pages; nothing
  /// if it has no others.
  /// Errors: `invalid_argument` for null with bytes, for memory that is not private, readable and writable throughout,
  /// for stacks in use, and for a buffer of which a part is registered already; `out_of_memory`. The buffer is as
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
    const std::uint64_t page = pages_.page();
    entry.pages.begin = begin / page * page;
    entry.pages.end = (begin + bytes + page - 1) / page * page;
    const std::string now = address_text(registering);
    forget_freed(entry.pages, now);
    const std::vector<PageBlock> known = blocks_under(entry);
    entries_.reserve(entries_.size() + 1);  // from here on there are no errors but those that are undone
    if (!joins(entry.pages, known, now)) take_pages(entry, known, now);
    std::size_t at = 0;
    while (at < entries_.size() && entries_[at].data < entry.data) ++at;
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at), entry);
  }

  /// Gives a buffer private pages again, unless other buffers have some of them; its contents stay. False if it is not
  /// registered. What has been freed in the meantime is left alone. Cost: a copy. Errors: `out_of_memory`, and the
  /// buffer stays registered.
  bool remove(const void* data) {
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      if (entries_[k].data != address(data)) continue;
      const PageBlock pages = entries_[k].pages;
      const bool last = next_block(k) == k + 1 && (k == 0 || entries_[k - 1].pages.block != pages.block);
      if (last) {
        if (const int error = pages_.give_own_pages(pages, address_text(deregistering))) {
          lacking(deregistering,
                  text(data, entries_[k].bytes) + ": no pages of its own could be had: " + system_error(error));
        }
        release(pages);
      }
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(k));
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
    return entries_[last_].pages.block + (at - entries_[last_].pages.begin);
  }

  /// How many buffers have pages of the arena.
  std::size_t size() const { return entries_.size(); }

 private:
  static constexpr const char* registering = "registering a buffer";
  static constexpr const char* deregistering = "deregistering a buffer";

  struct Entry {
    std::uint64_t data = 0;
    std::uint64_t bytes = 0;
    PageBlock pages;  ///< its own, and what lies beside it in the same block
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

  /// The first entry behind the k-th that is in another block: those of one block stand together.
  std::size_t next_block(std::size_t k) const {
    std::size_t next = k + 1;
    while (next < entries_.size() && entries_[next].pages.block == entries_[k].pages.block) ++next;
    return next;
  }

  void release(const PageBlock& pages) { arena_.release(pages.block, pages.end - pages.begin); }

  /// Calls f(first entry, end) for each block that has pages of these; f says where the next one begins.
  template <class F>
  void each_block(const PageBlock& pages, const F& f) {
    for (std::size_t k = 0; k < entries_.size();) {
      const PageBlock& other = entries_[k].pages;
      const bool apart = other.end <= pages.begin || pages.end <= other.begin;
      k = apart ? next_block(k) : f(k, next_block(k));
    }
  }

  /// Forgets buffers of which nothing is left at its place.
  void forget_freed(const PageBlock& pages, const std::string& now) {
    each_block(pages, [&](std::size_t first, std::size_t end) {
      if (!pages_.exchanged(entries_[first].pages, now).empty()) return end;
      release(entries_[first].pages);
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(first),
                     entries_.begin() + static_cast<std::ptrdiff_t>(end));
      return first;
    });
  }

  /// The blocks that have pages of a buffer, by address. Refuses it if another buffer has a part of it.
  std::vector<PageBlock> blocks_under(const Entry& entry) {
    std::vector<PageBlock> blocks;
    each_block(entry.pages, [&](std::size_t first, std::size_t end) {
      for (std::size_t k = first; k < end; ++k) {
        const Entry& other = entries_[k];
        if (entry.data + entry.bytes <= other.data || other.data + other.bytes <= entry.data) continue;
        fail(registering, "a buffer of which no part is registered",
             text(reinterpret_cast<const void*>(entry.data), entry.bytes) +
                 ", part of which is: " + text(reinterpret_cast<const void*>(other.data), other.bytes),
             "deregister buffers before they are freed or registered anew");
      }
      blocks.push_back(entries_[first].pages);
      return end;
    });
    return blocks;
  }

  /// Whether a block has all of these pages; then they become those of the block.
  bool joins(PageBlock& pages, const std::vector<PageBlock>& known, const std::string& now) const {
    if (known.size() != 1 || pages.begin < known[0].begin || known[0].end < pages.end) return false;
    if (!pages_.exchanged_throughout(known[0], pages.begin, pages.end, now)) return false;
    pages = known[0];
    return true;
  }

  /// Exchanges the pages of a buffer, and those of the blocks that have some of them, for one block.
  void take_pages(Entry& entry, const std::vector<PageBlock>& known, const std::string& now) {
    PageBlock& pages = entry.pages;
    const auto name = [&] { return text(reinterpret_cast<const void*>(entry.data), entry.bytes); };
    std::uint64_t at = pages.begin;
    for (const PageBlock& other : known) {
      if (at < other.begin) check(entry, at, other.begin, now);
      at = other.end;
      if (pages_.exchanged_throughout(other, other.begin, other.end, now)) continue;
      fail(registering, "registered buffers to be as they were where they share a page with another one",
           name() + ", beside " + std::to_string(other.end - other.begin) + " bytes at " + hexadecimal(other.begin) +
               ", part of which has been unmapped",
           "deregister buffers before they are freed");
    }
    if (at < pages.end) check(entry, at, pages.end, now);
    if (!known.empty()) {
      if (known.front().begin < pages.begin) pages.begin = known.front().begin;
      if (known.back().end > pages.end) pages.end = known.back().end;
    }

    // The same place within a huge page as the buffer has, so that the system can use huge pages for both addresses.
    const std::uint64_t huge = std::uint64_t{2} << 20, whole = pages.end - pages.begin;
    pages.block = static_cast<std::byte*>(whole < huge ? arena_.allocate(whole, pages_.page())
                                                       : arena_.allocate(whole, huge, pages.begin % huge));
    if (pages.block == nullptr) {
      lacking(registering, name() + ": no memory for its pages: " + system_error(arena_.error()));
    }
    if (const int error = pages_.copy_in(pages)) {
      release(pages);
      lacking(registering, name() + ": its pages could not be copied: " + system_error(error));
    }
    if (const int error = pages_.exchange(pages)) {
      release(pages);
      if (!known.empty()) forget_freed(pages, address_text(registering));
      lacking(registering, name() + ": its pages could not be exchanged: " + system_error(error));
    }
    for (Entry& other : entries_) {
      if (pages.begin <= other.pages.begin && other.pages.end <= pages.end) other.pages = pages;
    }
    for (const PageBlock& other : known) release(other);
  }

  /// Whether exchanging pages at [begin, end) that are no block's can work, for a buffer.
  void check(const Entry& entry, std::uint64_t begin, std::uint64_t end, const std::string& now) const {
    const auto buffer = [&] { return text(reinterpret_cast<const void*>(entry.data), entry.bytes); };
    const auto copy = "register heap memory, and copy what lies elsewhere into it";
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* stack = nullptr;
      std::size_t size = 0;
      pthread_attr_getstack(&attributes, &stack, &size);
      pthread_attr_destroy(&attributes);
      if (begin < address(stack) + size && address(stack) < end) {
        fail(registering, "memory that is no stack", buffer() + " on the stack of this thread", copy);
      }
    }
    std::uint64_t at = begin;
    for (const AddressRange& range : address_ranges(now, begin, end)) {
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
    if (at < end) {
      fail(registering, "a buffer of which every page exists", buffer() + ", of which " + hexadecimal(at) + " does not",
           "pass its address and size");
    }
  }

  /// What the system says of the addresses. It cannot always be asked; then nothing can be known to be free.
  static std::string address_text(const char* verb) {
    std::string text = system_text("/proc/self/maps");
    if (text.empty()) lacking(verb, "what lies at its addresses could not be read from /proc/self/maps");
    return text;
  }

  Space& space_;
  Arena& arena_;
  PageExchange pages_;
  std::vector<Entry> entries_;          ///< by address; they do not overlap, nor do blocks
  std::vector<const void*> unchanged_;  ///< registered, but there was nothing to do
  mutable std::size_t last_ = 0;        ///< the entry that the last question was about
};

}  // namespace meshwise::detail
