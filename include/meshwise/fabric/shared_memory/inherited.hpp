// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"
#include "meshwise/fabric/shared_memory/places.hpp"

namespace meshwise::detail {

/// Says why a rank cannot join its job.
struct JoinRefusal {
  int rank;

  // Everything by reference: g++ 12 at -O3 lets the caller destroy a vector once more that was passed by value and
  // moved from in a function that never returns.
  [[noreturn]] void raise(Code code, const std::string& expected, const std::string& found, const std::string& remedy,
                          const std::vector<int>& others = {}) const {
    Report report;
    report.code = code;
    report.operation = "joining the job";
    report.expected = expected;
    report.found = found;
    report.remedy = remedy;
    report.rank = rank;
    report.ranks = others;
    throw Error(std::move(report));
  }

  /// For what was told to this process.
  [[noreturn]] void wrong(const std::string& expected, const std::string& found) const {
    raise(Code::invalid_argument, expected, found,
          "pass the descriptors that the starter of the job handed down, in their order, and close none before");
  }
};

/// The files of a job that a rank has inherited from whoever started it: owned, and proven to be what they should be.
/// Nothing that the control segment says is believed before it has been compared, and nothing is written to it here.
///
/// Errors: `invalid_argument` for a rank that cannot be, for descriptors that are not open, or something else, and for
/// a control segment of another job or another version; `out_of_memory` if it cannot be mapped.
struct Inherited {
  Inherited(int rank, int ranks, int control_number, const std::vector<int>& arena_numbers)
      : refusal{rank}, control(control_number > 2 ? control_number : -1) {
    own(control_number, arena_numbers);
    if (ranks < 1 || ranks > Control::most_ranks) {
      refusal.wrong("1 to " + std::to_string(Control::most_ranks) + " ranks", std::to_string(ranks));
    }
    if (rank < 0 || rank >= ranks) {
      refusal.wrong("a rank from 0 to " + std::to_string(ranks - 1), std::to_string(rank));
    }
    if (arena_numbers.size() != static_cast<std::size_t>(ranks)) {
      refusal.wrong(std::to_string(ranks) + " arenas, one for each rank", std::to_string(arena_numbers.size()));
    }
    const struct stat file = look(control_number, "the control segment");
    compare_head(ranks);
    map_control(ranks, file);
    compare_arenas(arena_numbers, file);
  }

  JoinRefusal refusal;
  Descriptor control;
  std::vector<Descriptor> arenas;  ///< by rank
  MappedPages map;                 ///< of control
  std::uint64_t arena_bytes = 0;   ///< the most address space for one rank

 private:
  /// What Control begins with, in this and all other versions.
  struct Head {
    std::uint64_t magic;
    std::uint32_t version;
    std::int32_t ranks;
    std::uint64_t arena_bytes;
    std::uint32_t library;
  };
  static_assert(offsetof(Control, magic) == offsetof(Head, magic) &&
                offsetof(Control, version) == offsetof(Head, version) &&
                offsetof(Control, ranks) == offsetof(Head, ranks) &&
                offsetof(Control, arena_bytes) == offsetof(Head, arena_bytes) &&
                offsetof(Control, library) == offsetof(Head, library));

  /// What is told twice is closed once, and the standard descriptors never.
  void own(int control_number, const std::vector<int>& numbers) {
    arenas.reserve(numbers.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      bool known = numbers[k] <= 2 || numbers[k] == control_number;
      for (std::size_t before = 0; before < k; ++before) known = known || numbers[before] == numbers[k];
      arenas.emplace_back(known ? -1 : numbers[k]);
    }
  }

  static std::string kind_of(mode_t mode) {
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode)) return "a device";
    if (S_ISDIR(mode)) return "a folder";
    return "no regular file";
  }

  /// What a descriptor is, which must be a file that can be read and written.
  struct stat look(int number, const std::string& role) const {
    const std::string name = "descriptor " + std::to_string(number);
    if (number >= 0 && number <= 2) refusal.wrong(role + " above the standard descriptors", name);
    struct stat file {};
    if (number < 0 || fstat(number, &file) != 0) {
      refusal.wrong(role + " to be open", name + ", " + system_error(number < 0 ? EBADF : errno));
    }
    if (!S_ISREG(file.st_mode)) refusal.wrong(role + " to be a file in memory", name + ", " + kind_of(file.st_mode));
    if ((fcntl(number, F_GETFL) & O_ACCMODE) != O_RDWR) {
      refusal.wrong(role + " open for reading and writing", name + ", which is not");
    }
    return file;
  }

  /// "0.1.0 (layout 1f3a5b7c)"
  static std::string version_text(std::uint32_t library, std::uint32_t version) {
    char text[64];
    std::snprintf(text, sizeof(text), "%u.%u.%u (layout %08x)", library / 1'000'000, library / 1'000 % 1'000,
                  library % 1'000, version);
    return text;
  }

  void compare_head(int ranks) {
    Head head{};
    const bool whole = pread(control.get(), &head, sizeof(head), 0) == static_cast<ssize_t>(sizeof(head));
    if (!whole || head.magic != Control::right_magic) {
      refusal.wrong("a control segment that begins with \"meshwise\"", whole ? "other bytes there" : "nothing there");
    }
    if (head.version != Control::right_version()) {
      refusal.raise(Code::invalid_argument,
                    "a job started by the same meshwise as this program has: " +
                        version_text(library_version, Control::right_version()),
                    version_text(head.library, head.version),
                    "build the program, and what starts it (meshwise-run), with the same headers of meshwise");
    }
    if (head.ranks != ranks) {
      refusal.wrong("a control segment for " + std::to_string(ranks) + " ranks",
                    "one for " + std::to_string(head.ranks));
    }
    if (head.arena_bytes == 0 || head.arena_bytes > largest_arena || head.arena_bytes % arena_granule != 0) {
      refusal.wrong("arenas of whole 2 MiB, up to " + std::to_string(largest_arena) + " bytes",
                    std::to_string(head.arena_bytes));
    }
    arena_bytes = head.arena_bytes;
  }

  void map_control(int ranks, const struct stat& file) {
    // Room for the records of all ranks, and less than a page beyond them.
    const auto least = static_cast<off_t>(Control::bytes(ranks));
    const auto page = static_cast<off_t>(sysconf(_SC_PAGESIZE));
    if (file.st_size < least || file.st_size >= least + page) {
      refusal.wrong("a control segment of " + std::to_string(least) + " bytes in whole pages",
                    std::to_string(file.st_size) + " bytes");
    }
    const auto bytes = static_cast<std::size_t>(file.st_size);
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, control.get(), 0);
    if (memory == MAP_FAILED) {
      refusal.raise(Code::out_of_memory, "", "the control segment could not be mapped: " + system_error(errno),
                    "free memory, or raise the limit of address space (ulimit -v)");
    }
    map = MappedPages(memory, bytes);
  }

  void compare_arenas(const std::vector<int>& numbers, const struct stat& control_file) const {
    std::vector<struct stat> seen{control_file};
    for (std::size_t one = 0; one < numbers.size(); ++one) {
      const std::string role = "the arena of rank " + std::to_string(one);
      const struct stat arena = look(numbers[one], role);
      for (std::size_t k = 0; k < seen.size(); ++k) {
        if (seen[k].st_ino != arena.st_ino || seen[k].st_dev != arena.st_dev) continue;
        refusal.wrong(role + " to be a file of its own",
                      "descriptor " + std::to_string(numbers[one]) + ", the same file as " +
                          (k == 0 ? std::string("control") : "the arena of rank " + std::to_string(k - 1)));
      }
      if (arena.st_size < 0 || static_cast<std::uint64_t>(arena.st_size) > arena_bytes) {
        refusal.wrong(role + " of at most " + std::to_string(arena_bytes) + " bytes",
                      std::to_string(arena.st_size) + " bytes");
      }
      seen.push_back(arena);
    }
  }
};

}  // namespace meshwise::detail
