// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "meshwise/schedule/detail/logarithm.hpp"

namespace meshwise::detail {

/// How a power of two of the ranks does the work of all: some ranks first take over the part of their neighbour.
///
/// Workers are numbered 0 to size - 1 and stand for consecutive ranks, one or two each, so that combining workers in
/// order combines ranks in order. Pairs are spread over the ranks: any run of workers stands for its share of ranks,
/// give or take one. Of a pair the lower rank works, unless the other one is `favourite`.
class Folding {
 public:
  constexpr explicit Folding(int ranks, int favourite = 0)
      : ranks_(ranks), steps_(floor_lg(ranks)), favourite_(favourite) {}

  constexpr int size() const { return 1 << steps_; }
  constexpr int steps() const { return steps_; }
  /// The number of rounds which folding takes: 0 for a power of two, else 1.
  constexpr int rounds() const { return ranks_ > size() ? 1 : 0; }

  /// The first rank that a worker stands for, ceil(worker * ranks / size); for worker `size()` the number of ranks.
  constexpr int first(int worker) const {
    return static_cast<int>((static_cast<std::int64_t>(worker) * ranks_ + size() - 1) >> steps_);
  }
  /// The worker that stands for a rank.
  constexpr int worker(int rank) const {
    return static_cast<int>((static_cast<std::int64_t>(rank) << steps_) / ranks_);
  }
  constexpr bool paired(int rank) const {
    const int number = worker(rank);
    return first(number + 1) - first(number) == 2;
  }
  /// The other one of a pair.
  constexpr int mate(int rank) const {
    const int low = first(worker(rank));
    return rank == low ? low + 1 : low;
  }
  /// The rank that is a worker.
  constexpr int rank(int worker) const {
    const int low = first(worker);
    return favourite_ == low + 1 && favourite_ < first(worker + 1) ? favourite_ : low;
  }
  constexpr bool works(int number) const { return rank(worker(number)) == number; }

 private:
  int ranks_;
  int steps_;
  int favourite_;
};

}  // namespace meshwise::detail
