// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

#include "operation.hpp"

namespace peers {

/// Wakes all that wait for a word of the shared memory to change.
inline void wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Sleeps while the word has this value, for so long at most, or until a signal comes.
inline void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  const std::timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

enum class Task : std::uint32_t { check, time, release, leave };

/// What the ranks of one contestant are asked to do next.
struct Command {
  Task task = Task::release;
  Operation operation = Operation::barrier;
  std::uint64_t bytes = 0;
  std::int32_t warmups = 0;
  std::int32_t iterations = 0;
  std::uint32_t rewrite = 0;  ///< owners write their input before every iteration
};

/// Where the ranks of one contestant wait, meet and answer.
struct Seat {
  static constexpr std::size_t longest_text = 240;

  alignas(128) std::atomic<std::uint32_t> turn;  ///< commands so far; a futex
  Command command;
  alignas(128) std::atomic<std::uint32_t> finished;  ///< ranks that have done the present one
  std::atomic<std::uint32_t> joined;                 ///< ranks that are there
  std::atomic<std::uint32_t> wrong;                  ///< elements that check has found wrong
  std::atomic<std::uint32_t> cannot;                 ///< ranks whose library has no such operation
  std::atomic<std::uint32_t> texts;                  ///< ranks that have had something to say
  char text[longest_text];
  alignas(128) std::atomic<std::uint32_t> arrived;
  alignas(128) std::atomic<std::uint32_t> round;
  std::atomic<std::int64_t> start;  ///< when the ranks that have met begin, on the clock of all
};

/// What the controller and the ranks of all contestants share. Zeroed memory is one at rest.
struct Board {
  static constexpr std::uint32_t present_version = 2;
  static constexpr int most_ranks = 64;
  static constexpr int most_seats = 32;
  static constexpr int most_iterations = 4096;
  static constexpr int most_cores = 1024;

  std::uint32_t version;
  std::int32_t ranks;
  std::int32_t controller;  ///< its process
  std::int32_t cores;
  std::int32_t core[most_cores];                 ///< rank r runs on core r modulo their number
  alignas(128) std::atomic<std::uint32_t> done;  ///< changes whenever a contestant has joined or done a command
  Seat seats[most_seats];
  double nanoseconds[most_ranks][most_iterations];  ///< of every iteration of the contestant whose turn it is

  bool crowded() const { return ranks > cores; }
};

/// The board's memory, of no name in any file system: it is gone with the last process that has it.
class SharedBoard {
 public:
  /// A new one. Throws nothing; `valid` tells.
  static SharedBoard create() {
    SharedBoard board;
    board.file_ = memfd_create("peers", MFD_CLOEXEC);
    if (board.file_ >= 0 && ftruncate(board.file_, sizeof(Board)) == 0) board.map();
    if (board.valid()) {
      board.board_->version = Board::present_version;
      board.board_->controller = getpid();
    }
    return board;
  }

  /// The one whose path a controller has put into the environment.
  static SharedBoard open(const char* path) {
    SharedBoard board;
    board.file_ = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (board.file_ >= 0 && fstat(board.file_, &status) == 0 && status.st_size == sizeof(Board)) board.map();
    return board;
  }

  SharedBoard(SharedBoard&& other) noexcept : file_(other.file_), board_(other.board_) {
    other.file_ = -1;
    other.board_ = nullptr;
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() {
    if (board_ != nullptr) munmap(board_, sizeof(Board));
    if (file_ >= 0) close(file_);
  }

  bool valid() const { return board_ != nullptr; }
  Board& operator*() const { return *board_; }
  Board* operator->() const { return board_; }

  /// By which other processes of this user open it.
  std::string path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_); }

 private:
  SharedBoard() = default;

  void map() {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory != MAP_FAILED) board_ = static_cast<Board*>(memory);
  }

  int file_ = -1;
  Board* board_ = nullptr;
};

}  // namespace peers
