// SPDX-License-Identifier: Apache-2.0
// What the ranks of the jobs of meshwise-tune, threads or processes, and the program itself share.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/schedule/algorithm.hpp"

namespace tune {

/// The winner at one point.
struct Result {
  meshwise::Algorithm algorithm = meshwise::Algorithm::automatic;
  int lanes = 0;
  double seconds = 0;    ///< of one call
  double automatic = 0;  ///< of one call as the library would do it
};

struct Board {
  static constexpr std::size_t most_results = 4096;

  int cores = 0;  ///< that the job may use
  std::size_t size = 0;
  double times[2][meshwise::detail::Control::most_ranks];
  std::int64_t words[2];
  Result results[most_results];

  static Board* make() {
    void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return new (memory) Board;
  }
};

/// Ranks that decide together. Every use has a barrier, so that none is two uses behind another one.
class Council {
 public:
  Council(Board& board, meshwise::Communicator& world) : board_(board), world_(world) {}

  /// The value of rank 0.
  std::int64_t agree(std::int64_t value) {
    turn_ ^= 1;
    if (world_.rank() == 0) board_.words[turn_] = value;
    meshwise::barrier(world_);
    return board_.words[turn_];
  }

  /// The greatest of all ranks.
  double slowest(double seconds) {
    turn_ ^= 1;
    board_.times[turn_][world_.rank()] = seconds;
    meshwise::barrier(world_);
    double most = 0;
    for (int rank = 0; rank < world_.size(); ++rank) {
      most = board_.times[turn_][rank] > most ? board_.times[turn_][rank] : most;
    }
    return most;
  }

 private:
  Board& board_;
  meshwise::Communicator& world_;
  int turn_ = 0;
};

}  // namespace tune
