// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "../bench/clock.hpp"
#include "board.hpp"
#include "values.hpp"

namespace peers {

/// One call of an operation: whole vectors, and the block of each rank where there are blocks. Root is rank 0.
struct Work {
  Operation operation = Operation::barrier;
  std::size_t count = 0;  ///< floats of the vector that the size counts
  std::size_t block = 0;  ///< floats of each rank's block
  float* in = nullptr;    ///< of count floats, as of out; where it works in place only `out` counts
  float* out = nullptr;
};

/// Memory as programs have it that use no allocator of a library's, at its best: aligned to huge pages.
class OrdinaryMemory {
 public:
  OrdinaryMemory() = default;
  OrdinaryMemory(const OrdinaryMemory&) = delete;
  OrdinaryMemory& operator=(const OrdinaryMemory&) = delete;
  ~OrdinaryMemory() { release(); }
  float* reach(std::size_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    constexpr std::size_t page = std::size_t{2} << 20;
    const std::size_t rounded = (bytes + page - 1) / page * page;
    void* memory = nullptr;
    if (posix_memalign(&memory, page, rounded) != 0) throw std::bad_alloc();
    madvise(memory, rounded, MADV_HUGEPAGE);
    std::memset(memory, 0, rounded);
    data_ = static_cast<float*>(memory);
    bytes_ = rounded;
    return data_;
  }
  void release() {
    std::free(data_);
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  float* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A rank of a contestant: sleeps until it is its turn, and does what the board says with a library.
///
/// Library: `bool begin(const Work&)` (false: has no such operation), `void run()`, `void end()`, `void barrier()`,
/// `void progress()`, and a type `Memory` as OrdinaryMemory, made by `Memory memory()`.
template <class Library>
class Worker {
 public:
  Worker(Board& board, int seat, int rank, Library& library)
      : board_(board),
        seat_(board.seats[seat]),
        rank_(rank),
        library_(library),
        in_(library.memory()),
        out_(library.memory()) {}

  void serve() {
    const int core = board_.core[rank_ % std::max(1, board_.cores)];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(core), &one);
    if (board_.cores > 0) sched_setaffinity(0, sizeof one, &one);
    seat_.joined.fetch_add(1);
    answer();
    for (std::uint32_t seen = 0;; ++seen) {
      while (seat_.turn.load(std::memory_order_acquire) == seen) {
        sleep_while(seat_.turn, seen, 5);
        if (kill(board_.controller, 0) != 0) return;
      }
      const Command command = seat_.command;
      if (command.task == Task::leave) return;
      perform(command);
      if (seat_.finished.fetch_add(1) + 1 == static_cast<std::uint32_t>(board_.ranks)) answer();
    }
  }

 private:
  void answer() {
    board_.done.fetch_add(1, std::memory_order_release);
    wake(board_.done);
  }

  void perform(const Command& command) {
    if (command.task == Task::release) {
      in_.release();
      out_.release();
      return;
    }
    Work work;
    work.operation = command.operation;
    work.count = count_of(command.operation, command.bytes, board_.ranks);
    work.block = block_of(command.bytes, board_.ranks);
    const std::size_t bytes = std::max<std::size_t>(64, work.count * sizeof(float));
    work.in = in_.reach(bytes);
    work.out = out_.reach(bytes);
    const bool check = command.task == Task::check;
    fill(work, check);
    meet();
    if (!library_.begin(work)) {
      seat_.cannot.fetch_add(1);
      return;
    }
    if (check) {
      meet();
      library_.run();
      seat_.wrong.fetch_add(wrong_elements(work, rank_, board_.ranks));
    } else {
      time(command, work);
    }
    library_.barrier();  // so that nothing is in flight when the others' turn comes
    meet();
    library_.end();
  }

  /// Sums in place are of zeros unless they are checked or rewritten: they would grow without end.
  void fill(const Work& work, bool check) const {
    const bool zeros = !check && work.operation == Operation::all_reduce_in_place;
    for (std::size_t i = 0; i < work.count; ++i) {
      const float own = value_of(rank_, i);
      work.in[i] = own;
      work.out[i] = work.operation != Operation::all_reduce_in_place ? -1.0F : zeros ? 0.0F : own;
    }
  }

  void time(const Command& command, const Work& work) {
    float* const owned = work.operation == Operation::all_reduce_in_place ? work.out : work.in;
    double* const row = board_.nanoseconds[rank_];
    for (int k = -command.warmups; k < command.iterations; ++k) {
      if (command.rewrite != 0) std::fill(owned, owned + work.count, static_cast<float>(rank_ + (k & 1)));
      const std::int64_t start = meet();
      library_.run();
      const std::int64_t took = harness::nanoseconds() - start;
      if (k >= 0) row[k] = static_cast<double>(took);
    }
  }

  /// A barrier of no library's. Where it takes long the library may need this rank to go on with what others wait for.
  ///
  /// Returns the time of leaving. Where each rank has a core all leave at one time on the clock, which is what the last
  /// one to come says: else one would be ahead by the way of a cache line, which is as long as a small call.
  std::int64_t meet() {
    const std::uint32_t round = seat_.round.load(std::memory_order_relaxed);
    if (seat_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(board_.ranks)) {
      seat_.arrived.store(0, std::memory_order_relaxed);
      seat_.start.store(harness::nanoseconds() + 600, std::memory_order_relaxed);
      seat_.round.store(round + 1, std::memory_order_release);
      return leave();
    }
    int patience = board_.crowded() ? 8 : 5000;
    while (seat_.round.load(std::memory_order_acquire) == round) {
      if (--patience > 0) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
        continue;
      }
      sched_yield();
      if (patience % 64 == 0) library_.progress();
      if (patience < -(1 << 30)) patience = 0;
    }
    return leave();
  }

  std::int64_t leave() const {
    std::int64_t now = harness::nanoseconds();
    if (board_.crowded()) return now;
    const std::int64_t start = seat_.start.load(std::memory_order_relaxed);
    while (now < start) now = harness::nanoseconds();
    return now;
  }

  Board& board_;
  Seat& seat_;
  int rank_;
  Library& library_;
  typename Library::Memory in_, out_;
};

/// Leaves a text for the controller, if no other rank has.
inline void say(Seat& seat, const char* text) {
  if (seat.texts.fetch_add(1) == 0) std::snprintf(seat.text, sizeof seat.text, "%s", text);
}

/// The main function of a peer's program. start: gives rank and size and keeps the library alive as long as it exists.
template <class Library, class... Arguments>
int serve_peer(int rank, int size, Arguments&&... arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SharedBoard board = SharedBoard::open(std::getenv("MESHWISE_PEERS_BOARD"));
  const char* const number = std::getenv("MESHWISE_PEERS_SEAT");
  const int seat = number == nullptr ? -1 : std::atoi(number);
  if (!board.valid() || board->version != Board::present_version || seat < 0 || seat >= Board::most_seats) {
    std::fprintf(stderr, "this program is started by meshwise-peers, of the same build; see its --help\n");
    return 2;
  }
  if (size != board->ranks) {
    say(board->seats[seat], "the launcher has started another number of ranks, or a library that it is not of");
    return 2;
  }
  try {
    Library library(rank, size, std::forward<Arguments>(arguments)...);
    Worker<Library>(*board, seat, rank, library).serve();
    return 0;
  } catch (const std::exception& error) {
    say(board->seats[seat], error.what());
  }
  return 1;
}

}  // namespace peers
