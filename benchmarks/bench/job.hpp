// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "host.hpp"
#include "meshwise/collective/communicator.hpp"
#include "options.hpp"
#include "point.hpp"

namespace harness {

/// Where rank 0 of every job leaves its points: memory that it shares with who has started the ranks.
class Board {
 public:
  explicit Board(std::size_t capacity);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  std::size_t size() const { return head_->size; }
  const Point& operator[](std::size_t k) const { return points_[k]; }
  void add(const Point& point);
  std::int64_t wrong() const;

 private:
  struct alignas(64) Head {
    std::size_t size;
  };
  std::size_t capacity_;
  std::size_t bytes_;
  Head* head_ = nullptr;
  Point* points_ = nullptr;
};

/// No job and no run has more points than this.
std::size_t most_points(const Options& options);

/// What every rank does: all operations that the options name. Rank 0 prints and adds to the board.
/// processes: what the ranks are.
void run_job(meshwise::Communicator& world, const Options& options, bool processes, Board& board);

}  // namespace harness
