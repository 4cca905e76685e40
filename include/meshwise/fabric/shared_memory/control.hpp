// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "meshwise/core/detail/mix.hpp"
#include "meshwise/core/detail/packed_report.hpp"
#include "meshwise/core/yield_cost.hpp"
#include "meshwise/schedule/settings.hpp"
#include "meshwise/version.hpp"

namespace meshwise::detail {

/// What one rank of a job of processes shows to the others and to whoever has started it. Written by its owner, but
/// for `ended` and `status`.
struct alignas(128) RankRecord {
  enum State : std::uint32_t {
    expected,  ///< has not come yet
    locked,    ///< holds its lock, so that its death shows; pid, cores and places are written
    mapped,    ///< addresses the memory of all ranks
    refused,   ///< cannot; `report` says why
    left       ///< has ended in peace: its lock is no news any more
  };
  std::atomic<std::uint32_t> state{expected};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint64_t> cores[16]{};  ///< the processors it may run on, one bit each
  std::atomic<std::uint32_t> quota{0};     ///< cores that its control group grants, 0: no limit
  std::atomic<std::uint64_t> places{0};    ///< the places in the address space that it could map everything at
  std::atomic<std::uint32_t> ended{0};     ///< set by who started it, after `status`
  std::atomic<std::int32_t> status{0};     ///< as of waitpid
  std::atomic<std::uint32_t> reported{0};  ///< `report` is complete
  std::atomic<std::uint64_t> shown{0};     ///< the address of a word of private memory, and the word, for others to try
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint32_t> tried{0};    ///< 1: has shown a word; 2, 3: could not, could read those of all others
  std::atomic<std::uint32_t> shrinks{0};  ///< how often it has begun to go on without ranks that failed
  PackedReport report;                    ///< why this rank failed
};

/// A version of the library in one number: 0.1.0 is 1000.
inline constexpr std::uint32_t library_version = version_major * 1'000'000 + version_minor * 1'000 + version_patch;

/// The beginning of the control segment; a RankRecord for each rank follows.
struct alignas(128) Control {
  static constexpr std::uint64_t right_magic = 0x6d65736877697365;  // "meshwise"
  /// Of the control segment: another one for every other layout of it and every other version of the library.
  static constexpr std::uint32_t right_version();
  static constexpr int most_ranks = 256;

  std::uint64_t magic = right_magic;
  std::uint32_t version = right_version();
  std::int32_t ranks = 0;
  std::uint64_t arena_bytes = 0;  ///< address space for the memory of one rank
  std::uint32_t library = library_version;
  // So far the same in all versions.
  std::atomic<std::uint64_t> world{0};         ///< where rank 0 has put what the ranks of the world share
  std::atomic<std::uint32_t> failed{0};        ///< 1 + the first rank whose failure ends the job
  std::atomic<std::uint32_t> settings_set{0};  ///< `settings` is written, by rank 0
  Settings settings;
  alignas(128) YieldCost yields;  ///< what they have cost the ranks lately

  static constexpr std::size_t bytes(int ranks) {
    return sizeof(Control) + static_cast<std::size_t>(ranks) * sizeof(RankRecord);
  }
  RankRecord& record(int rank) { return reinterpret_cast<RankRecord*>(this + 1)[rank]; }
  const RankRecord& record(int rank) const { return reinterpret_cast<const RankRecord*>(this + 1)[rank]; }
};

constexpr std::uint32_t Control::right_version() {
  const std::size_t layout[] = {
      library_version,
      sizeof(Control),
      offsetof(Control, world),
      offsetof(Control, failed),
      offsetof(Control, settings_set),
      offsetof(Control, settings),
      offsetof(Control, yields),
      sizeof(Settings),
      offsetof(Settings, forced),
      offsetof(Settings, log),
      offsetof(Settings, table),
      offsetof(Settings, cache),
      sizeof(Settings::table),
      static_cast<std::size_t>(operation_count),
      static_cast<std::size_t>(algorithm_count),
      static_cast<std::size_t>(log_level_count),
      sizeof(RankRecord),
      offsetof(RankRecord, state),
      offsetof(RankRecord, pid),
      offsetof(RankRecord, cores),
      offsetof(RankRecord, quota),
      offsetof(RankRecord, places),
      offsetof(RankRecord, ended),
      offsetof(RankRecord, status),
      offsetof(RankRecord, reported),
      offsetof(RankRecord, shown),
      offsetof(RankRecord, word),
      offsetof(RankRecord, tried),
      offsetof(RankRecord, shrinks),
      offsetof(RankRecord, report),
      sizeof(PackedReport),
      offsetof(PackedReport, operation),
      offsetof(PackedReport, expected),
      offsetof(PackedReport, found),
      offsetof(PackedReport, remedy),
      offsetof(PackedReport, axis),
      RankRecord::left,
  };
  std::uint64_t hash = 0;
  for (const std::size_t one : layout) hash = mix(hash, one);
  return static_cast<std::uint32_t>(hash >> 32) | 1;
}

/// The lock by which a rank shows that its process lives: a POSIX record lock on one byte of the control segment. The
/// kernel releases it when the process ends, however it ends; children do not inherit it; no process number is
/// involved, so that namespaces do not matter. It goes too when the process closes any descriptor of that segment.
///
/// Cost of looking: one system call.
class LifeLock {
 public:
  /// Takes the lock of a rank; false if another process holds it.
  static bool take(int descriptor, int rank) {
    struct flock lock = of(rank);
    return fcntl(descriptor, F_SETLK, &lock) == 0;
  }

  /// Whether another process holds the lock of a rank. (The own one never shows.)
  static bool held(int descriptor, int rank) {
    struct flock lock = of(rank);
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }

 private:
  static struct flock of(int rank) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
  }
};

}  // namespace meshwise::detail
