// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/shared_memory/arena.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/inherited.hpp"
#include "meshwise/fabric/shared_memory/places.hpp"
#include "meshwise/fabric/shared_memory/processors.hpp"

namespace meshwise::detail {

/// The memory of a job of processes, as one rank sees it: the arenas of all ranks one after the other, at the same
/// addresses in every process, so that pointers into them mean the same everywhere.
///
/// Cost: the constructor waits for all ranks twice; it takes 1 ms plus what the slowest rank takes to start.
/// The death of a rank shows as soon as the system has taken its files from it: after its core has been dumped, if it
/// is.
/// Lifetime: one for each rank and process, at one address. A forked child of the rank has none of this memory
/// (touching it there is a fault that ends the child), nor the lock by which the others know that the rank lives.
class Space {
 public:
  /// Joins the job. rank: this process; the descriptors are those of Segments, arenas by rank. They are closed when
  /// they are not needed any more, in case of an error too. deadline: for all ranks to come, in seconds; 0 for none.
  /// Errors: `invalid_argument` for descriptors that are something else, and for a rank that another process is;
  /// `timed_out` names the ranks that have not come; `peer_left` and `aborted` those that have ended or that cannot
  /// join; `unsupported` where no part of the address space is free in all ranks. The other ranks stop waiting, with
  /// the same report, as soon as one has failed after its descriptors proved right.
  Space(int rank, int ranks, int control, const std::vector<int>& arenas, double deadline)
      : rank_(rank), ranks_(ranks), inherited_(rank, ranks, control, arenas) {
    claim();
    try {
      Deadline until(deadline);
      announce();
      await(RankRecord::locked, until);
      map();
      await(RankRecord::mapped, until);
      compare();
    } catch (const Error& error) {
      give_up(error.report());
      throw;
    } catch (const std::exception& error) {
      Report report;
      report.code = Code::out_of_memory;
      report.found = error.what();
      give_up(report);
      throw;
    }
  }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  /// Leaves in peace: from now on the others do not take the end of this process for a failure. Not so if one has been
  /// reported.
  ~Space() {
    if (!inherited_.map.mine()) return;  // a forked child
    RankRecord& own = record(rank_);
    if (own.reported.load(std::memory_order_relaxed) == 0) own.state.store(RankRecord::left, std::memory_order_release);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Control& control() { return *static_cast<Control*>(inherited_.map.begin()); }
  const Control& control() const { return *static_cast<const Control*>(inherited_.map.begin()); }
  /// The descriptor of the control segment; closing any copy of it in this process makes the others think it dead.
  int control_descriptor() const { return inherited_.control.get(); }

  /// Where the arena of rank 0 begins; that of rank r is r * arena_bytes() further.
  std::byte* base() const { return base_; }
  std::uint64_t arena_bytes() const { return arena_bytes_; }
  /// Which of address_places the job lies at.
  int place() const { return place_; }

  /// Whether all ranks see these bytes at these addresses.
  bool addressable(const void* data, std::size_t bytes) const {
    const std::uint64_t whole = static_cast<std::uint64_t>(ranks_) * arena_bytes_;
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(base_);
    return at < whole && bytes <= whole - at;
  }

  /// The allocator of the arena of this rank.
  Arena& arena() { return *arena_; }

  /// Whether a rank has ended, in whatever way, without having left. (One that is stopped has not.) Cost: one system
  /// call.
  bool dead(int rank) const {
    if (rank == rank_) return false;
    const RankRecord& other = record(rank);
    const std::uint32_t before = other.state.load(std::memory_order_acquire);
    if (before == RankRecord::left) return false;
    const bool ended = other.ended.load(std::memory_order_acquire) != 0;
    const bool gone = ended || (before != RankRecord::expected && !LifeLock::held(inherited_.control.get(), rank));
    // It may have left between the two looks.
    return gone && other.state.load(std::memory_order_acquire) != RankRecord::left;
  }

  /// How a rank ended, for messages: "was killed by signal 9", "exited with code 3", "has ended".
  std::string how_it_ended(int rank) const {
    const RankRecord& other = record(rank);
    if (other.ended.load(std::memory_order_acquire) == 0) return "has ended";
    const int status = other.status.load(std::memory_order_relaxed);
    if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
    return "has ended";
  }

  /// The processors that the ranks may keep busy together: those that any of them may run on, and no more than the
  /// control group of any of them grants. At least 1.
  int cores() const { return cores_; }
  /// Whether there are more ranks than cores.
  bool crowded() const { return ranks_ > cores_; }

 private:
  static constexpr std::uint64_t stamp_magic = 0x6172656e61206f66;  // "arena of"

  /// Stands at the beginning of each arena, so that descriptors in the wrong order are found out.
  struct alignas(64) Stamp {
    std::uint64_t magic = 0;
    std::uint64_t rank = 0;
  };

  RankRecord& record(int rank) { return control().record(rank); }
  const RankRecord& record(int rank) const { return control().record(rank); }

  /// Makes this process the one that is this rank.
  void claim() {
    // The mapping and the lock are for this process alone.
    madvise(inherited_.map.begin(), inherited_.map.bytes(), MADV_DONTFORK);
    fcntl(inherited_.control.get(), F_SETFD, FD_CLOEXEC);
    for (const Descriptor& one : inherited_.arenas) fcntl(one.get(), F_SETFD, FD_CLOEXEC);
    const int pid = record(rank_).pid.load(std::memory_order_relaxed);
    const std::string other = "another process" + (pid != 0 ? " (pid " + std::to_string(pid) + ")" : std::string());
    const std::string remedy = "start each rank once, and each job anew";
    if (!LifeLock::take(inherited_.control.get(), rank_)) {
      const int error = errno;
      const bool held = error == EAGAIN || error == EACCES;
      inherited_.refusal.raise(
          held ? Code::invalid_argument : Code::unsupported, "this process alone to be the rank",
          held ? other + " that is it already" : "no lock to show that it lives: " + system_error(error), remedy);
    }
    std::int32_t nobody = 0;
    if (!record(rank_).pid.compare_exchange_strong(nobody, getpid())) {
      inherited_.refusal.raise(Code::invalid_argument, "this process alone to be the rank",
                               other + " that has been it before", remedy);
    }
  }

  void announce() {
    RankRecord& own = record(rank_);
    const ProcessorSet permitted = ProcessorSet::permitted();
    for (int k = 0; k < ProcessorSet::words; ++k) own.cores[k].store(permitted.word[k], std::memory_order_relaxed);
    own.quota.store(processor_quota(), std::memory_order_relaxed);
    own.places.store(free_places(ranks_, inherited_.arena_bytes), std::memory_order_relaxed);
    own.state.store(RankRecord::locked, std::memory_order_release);
  }

  /// Waits until all ranks have come so far.
  void await(RankRecord::State state, Deadline& until) {
    int next = 0;  // those before it have
    const auto reached = [&](int one) {
      const std::uint32_t now = record(one).state.load(std::memory_order_acquire);
      return now >= state && now != RankRecord::refused && now <= RankRecord::left;
    };
    // The first time, who has how many cores is not known yet.
    Backoff backoff(state == RankRecord::locked || crowded());
    for (;;) {
      while (next < ranks_ && reached(next)) ++next;
      if (next == ranks_) return;
      if (!backoff.pause()) continue;
      // The first cause before what followed from it.
      const std::uint32_t failed = control().failed.load(std::memory_order_acquire);
      if (failed != 0 && failed <= static_cast<std::uint32_t>(ranks_)) quote(static_cast<int>(failed) - 1);
      std::vector<int> missing;
      for (int one = next; one < ranks_; ++one) {
        if (reached(one)) continue;
        give_in(one);
        missing.push_back(one);
      }
      if (missing.empty() || !until.expired()) continue;
      std::string names;
      for (std::size_t k = 0; k < missing.size() && k < 16; ++k) {
        names += (k == 0 ? "" : ", ") + std::to_string(missing[k]);
      }
      if (missing.size() > 16) names += " and " + std::to_string(missing.size() - 16) + " more";
      const bool one = missing.size() == 1;
      inherited_.refusal.raise(
          Code::timed_out,
          "all " + std::to_string(ranks_) + " ranks to " +
              (state == RankRecord::locked ? "come" : "map the memory of the job") + " within " +
              seconds(until.seconds()),
          std::string("no sign of rank") + (one ? " " : "s ") + names,
          "look for what keeps " + std::string(one ? "it" : "them") + " from starting, or raise the deadline", missing);
    }
  }

  static std::string seconds(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
  }

  /// Ends the wait for a rank that will not come any more.
  void give_in(int one) const {
    if (record(one).state.load(std::memory_order_acquire) == RankRecord::refused) quote(one);
    if (!dead(one)) return;
    if (record(one).reported.load(std::memory_order_acquire) != 0) quote(one);
    inherited_.refusal.raise(Code::peer_left, "all " + std::to_string(ranks_) + " ranks to join",
                             "rank " + std::to_string(one) + ", which " + how_it_ended(one) + " before it had",
                             "look for the cause there", {one});
  }

  [[noreturn]] void quote(int one) const {
    Report report;
    if (record(one).reported.load(std::memory_order_acquire) != 0) report = record(one).report.unpack();
    const std::string text = report.found.empty() ? "no reason given" : Error(report).what();
    inherited_.refusal.raise(Code::aborted, "", "rank " + std::to_string(one) + " failed: " + text,
                             "look for the cause there", {one});
  }

  /// Maps all arenas at the first place that is free in all ranks.
  void map() {
    ProcessorSet all;
    std::uint64_t common = ~std::uint64_t{0};
    std::uint32_t quota = 0;
    for (int one = 0; one < ranks_; ++one) {
      const RankRecord& other = record(one);
      ProcessorSet permitted;
      for (int k = 0; k < ProcessorSet::words; ++k) {
        permitted.word[k] = other.cores[k].load(std::memory_order_relaxed);
      }
      all.add(permitted);
      const std::uint32_t granted = other.quota.load(std::memory_order_relaxed);
      if (granted != 0 && (quota == 0 || granted < quota)) quota = granted;
      common &= other.places.load(std::memory_order_relaxed);
    }
    cores_ = all.count();
    if (quota != 0 && quota < static_cast<std::uint32_t>(cores_)) cores_ = static_cast<int>(quota);
    if (cores_ < 1) cores_ = 1;

    while (place_ < address_place_count && (common >> place_ & 1) == 0) ++place_;
    if (place_ == address_place_count) no_place();
    const AddressPlace place = address_places[place_];
    arena_bytes_ = place.arena(ranks_, inherited_.arena_bytes);
    const auto at = [&](int one) {
      return reinterpret_cast<std::byte*>(place.base + static_cast<std::uint64_t>(one) * arena_bytes_);
    };
    arena_maps_.reserve(static_cast<std::size_t>(ranks_));
    for (int one = 0; one < ranks_; ++one) {
      void* const got =
          mmap(at(one), arena_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
               inherited_.arenas[static_cast<std::size_t>(one)].get(), 0);
      const int error = errno;
      if (got != MAP_FAILED) arena_maps_.emplace_back(got, arena_bytes_);
      if (got != at(one)) {
        inherited_.refusal.raise(
            Code::unsupported, "",
            "the memory of rank " + std::to_string(one) + " could not be mapped where all ranks map it: " +
                (got == MAP_FAILED ? system_error(error) : "the system chose another address"),
            "map nothing at fixed addresses while ranks start, and look at the limit of address space (ulimit -v)",
            {one});
      }
      madvise(got, arena_bytes_, MADV_DONTFORK);
      madvise(got, arena_bytes_, MADV_HUGEPAGE);
#if defined(MADV_DONTDUMP)
      // Else a rank that dumps its core would write every page of the addresses, and hold its lock for minutes. What
      // the own arena has in use is put back by Arena.
      madvise(got, arena_bytes_, MADV_DONTDUMP);
#endif
    }
    base_ = at(0);
    arena_ = std::make_unique<Arena>(inherited_.arenas[static_cast<std::size_t>(rank_)].get(), at(rank_), arena_bytes_);
    void* const first = arena_->allocate(sizeof(Stamp), alignof(Stamp));  // the beginning of the arena
    if (first == nullptr) {
      inherited_.refusal.raise(
          Code::out_of_memory, "", "no memory for the first pages of its arena: " + system_error(arena_->error()),
          "free memory, or raise the limits of the control group and of the size of files (ulimit -f)");
    }
    ::new (first) Stamp{stamp_magic, static_cast<std::uint64_t>(rank_)};
    record(rank_).state.store(RankRecord::mapped, std::memory_order_release);
  }

  [[noreturn]] void no_place() const {
    std::string lacking;
    for (int k = 0; k < address_place_count; ++k) {
      int one = 0;
      while ((record(one).places.load(std::memory_order_relaxed) >> k & 1) != 0 && one < ranks_ - 1) ++one;
      if (record(one).places.load(std::memory_order_relaxed) == 0) {
        lacking = "nothing free in rank " + std::to_string(one) + " at the " + std::to_string(address_place_count) +
                  " places that are tried";
        break;
      }
      char text[64];
      std::snprintf(text, sizeof(text), "%s%#llx in rank %d", k == 0 ? "something everywhere: at " : ", ",
                    static_cast<unsigned long long>(address_places[k].base), one);
      lacking += text;
    }
    inherited_.refusal.raise(Code::unsupported,
                             "a part of the address space that is free in all " + std::to_string(ranks_) + " ranks",
                             lacking, "map less at fixed addresses, or raise the limit of address space (ulimit -v)");
  }

  /// Finds out whether all hold the same arenas for the same ranks, and closes those of the others. It reads through
  /// the
  /// descriptors: to touch the memory of an arena that nobody has begun would end this process.
  void compare() {
    for (int one = 0; one < ranks_; ++one) {
      Descriptor& file = inherited_.arenas[static_cast<std::size_t>(one)];
      Stamp stamp{};
      const bool whole = pread(file.get(), &stamp, sizeof(stamp), 0) == static_cast<ssize_t>(sizeof(stamp));
      if (!whole || stamp.magic != stamp_magic || stamp.rank != static_cast<std::uint64_t>(one)) {
        inherited_.refusal.wrong("the arena of rank " + std::to_string(one) + ", as that rank has it, in its place",
                                 "another one");
      }
    }
    for (int one = 0; one < ranks_; ++one) {
      if (one != rank_) inherited_.arenas[static_cast<std::size_t>(one)] = Descriptor();
    }
  }

  /// Lets the others know why this rank does not join.
  void give_up(const Report& report) noexcept {
    RankRecord& own = record(rank_);
    own.report.pack(report);
    own.reported.store(1, std::memory_order_release);
    std::uint32_t none = 0;
    control().failed.compare_exchange_strong(none, static_cast<std::uint32_t>(rank_) + 1);
    own.state.store(RankRecord::refused, std::memory_order_release);
  }

  int rank_;
  int ranks_;
  // The members end in the reverse order: the lock, which hangs on a descriptor, goes last.
  Inherited inherited_;
  std::vector<MappedPages> arena_maps_;
  std::unique_ptr<Arena> arena_;
  std::uint64_t arena_bytes_ = 0;
  std::byte* base_ = nullptr;
  int place_ = 0;
  int cores_ = 1;
};

}  // namespace meshwise::detail
