// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"
#include "meshwise/fabric/shared_memory/places.hpp"

namespace meshwise::detail {

/// What the ranks of a job of processes share, as whoever starts them holds it: files without names that live in
/// memory, one for control and one arena for each rank. The ranks inherit the descriptors; see Space.
///
/// Cost: ranks + 1 descriptors, and memory for the control file only (1 MiB for 256 ranks).
/// Ordering: one thread. Lifetime: the memory goes back to the system with the last process that holds it, however that
/// ends; the starter may close its side as soon as all ranks have been forked.
class Segments {
 public:
  /// The descriptors, once they belong to somebody else.
  struct Descriptors {
    int control = -1;
    std::vector<int> arenas;
  };

  /// ranks: 1 to Control::most_ranks. arena_bytes: the most address space (not memory) for one rank, rounded up to
  /// 2 MiB; 0 for as much as `largest_arena`. A rank gets less where the place in the address space that suits all
  /// ranks has less: see `address_places`.
  /// Errors: `invalid_argument` for a number of ranks that cannot be; `out_of_memory` without memory or descriptors.
  static Segments create(int ranks, std::uint64_t arena_bytes = 0) {
    if (ranks < 1 || ranks > Control::most_ranks) {
      fail("starting the job", "1 to " + std::to_string(Control::most_ranks) + " ranks on one host",
           std::to_string(ranks), "start fewer ranks, and threads inside them for the other cores");
    }
    if (arena_bytes > largest_arena) {
      fail("starting the job", "at most " + std::to_string(largest_arena) + " bytes of addresses for a rank",
           std::to_string(arena_bytes), "pass 0 to have the size chosen");
    }
    Segments made;
    made.control_ = file(ranks, "meshwise control");
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (Control::bytes(ranks) + page - 1) / page * page;
    if (const int error = reserve_pages(made.control_.get(), 0, bytes)) {
      refuse(ranks, std::to_string(bytes) + " bytes for control could not be had: " + system_error(error),
             error == EFBIG ? "raise the limit of the size of files (ulimit -f)"
                            : "free memory, or enlarge /dev/shm where memfd_create is not permitted");
    }
    seal(made.control_, true);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made.control_.get(), 0);
    if (memory == MAP_FAILED) {
      refuse(ranks, "the " + std::to_string(bytes) + " bytes of control could not be mapped: " + system_error(errno),
             "free memory, or raise the limit of address space (ulimit -v)");
    }
    made.mapped_ = MappedPages(memory, bytes);
    auto* const control = ::new (memory) Control{};
    control->ranks = ranks;
    control->arena_bytes =
        arena_bytes == 0 ? largest_arena : (arena_bytes + arena_granule - 1) / arena_granule * arena_granule;
    for (int rank = 0; rank < ranks; ++rank) ::new (&control->record(rank)) RankRecord{};
    made.arenas_.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      made.arenas_.push_back(file(ranks, "meshwise arena"));
      seal(made.arenas_.back(), false);
    }
    return made;
  }

  int ranks() const { return static_cast<int>(arenas_.size()); }
  /// Both are closed by exec: a program that is to be a rank must be given copies.
  int control() const { return control_.get(); }
  int arena(int rank) const { return arenas_[static_cast<std::size_t>(rank)].get(); }

  Control& header() { return *static_cast<Control*>(mapped_.begin()); }
  const Control& header() const { return *static_cast<const Control*>(mapped_.begin()); }

  /// Tells all ranks that one has ended. wait_status: as of waitpid.
  void ended(int rank, int wait_status) {
    RankRecord& record = header().record(rank);
    record.status.store(wait_status, std::memory_order_relaxed);
    record.ended.store(1, std::memory_order_release);
  }

  /// For a forked child that becomes a rank: its Space closes the descriptors. Nothing but the destructor may follow.
  /// (A second copy of the control descriptor must not be closed by a rank: its lock would go.)
  Descriptors release() {
    Descriptors all;
    all.control = control_.release();
    for (Descriptor& arena : arenas_) all.arenas.push_back(arena.release());
    arenas_.clear();
    mapped_ = MappedPages();
    return all;
  }

 private:
  Segments() = default;

  static Descriptor file(int ranks, const char* name) {
    Descriptor made = memory_file(name);
    if (made) return made;
    const int error = errno;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const bool few = error == EMFILE || error == ENFILE;
    refuse(ranks,
           std::string("\"") + name + "\", a file in memory, could not be made: " + system_error(error) +
               (few ? ", " + std::to_string(ranks + 1) + " are needed and " + std::to_string(limit.rlim_cur) +
                          " descriptors are permitted in all"
                    : ""),
           few ? "raise the limit of open files (ulimit -n)"
               : "permit memfd_create, or mount a tmpfs with enough space at /dev/shm");
  }

  [[noreturn]] static void refuse(int ranks, const std::string& found, const char* remedy) {
    Report report;
    report.code = Code::out_of_memory;
    report.operation = "starting the job";
    report.found = std::to_string(ranks) + " ranks cannot share memory: " + found;
    report.remedy = remedy;
    throw Error(std::move(report));
  }

  Descriptor control_;
  std::vector<Descriptor> arenas_;
  MappedPages mapped_;
};

static_assert(std::is_nothrow_move_constructible_v<Segments>);

}  // namespace meshwise::detail
