// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/schedule/compile.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/lower.hpp"
#include "meshwise/schedule/ring.hpp"

namespace meshwise::detail {

/// Pieces of other ranks that a move touches, one per ordered pair of ranks.
inline std::uint64_t foreign_pieces(const Move& move) {
  std::uint64_t result = 0;
  const auto count = [&](const std::vector<Piece>& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      bool fresh = pieces[i].rank != move.by;
      for (std::size_t j = 0; fresh && j < i; ++j) fresh = pieces[j].rank != pieces[i].rank;
      result += fresh ? 1 : 0;
    }
  };
  count(move.from);
  count(move.to);
  return result;
}

/// A plan for memory, and what follows from it.
struct MemoryPlan {
  Plan plan;
  std::uint64_t messages = 0;  ///< foreign pieces of all steps
  bool settled = false;        ///< no output is read again, so that stores need not stay in the cache

  template <class G>
  static MemoryPlan make(const Shape& shape, int rank) {
    MemoryPlan result{compile<G>(shape, rank), 0, G::rounds(shape) <= 1};
    for (const Step& step : result.plan.steps) result.messages += foreign_pieces(step.move);
    return result;
  }
};

/// Makes lowered plans, for PlanCache.
struct LoweredPlan {
  MessagePlan plan;

  template <class G>
  static LoweredPlan make(const Shape& shape, int rank) {
    return LoweredPlan{lower<G>(shape, rank)};
  }
};

/// The plans of one rank by kind of call. Lengths are not part of a plan, so a program needs few; the oldest goes when
/// there are too many.
template <class P>
class PlanCache {
 public:
  /// Valid until the next call. Errors: `invalid_argument` for a shape that no schedule exists for.
  const P& find(const Shape& shape, Algorithm algorithm, int rank) {
    for (const auto& entry : entries_) {
      if (entry->shape == shape && entry->algorithm == algorithm) return entry->plan;
    }
    auto entry = std::make_unique<Entry>(Entry{
        shape, algorithm,
        algorithm == Algorithm::ring ? P::template make<Ring>(shape, rank) : P::template make<Direct>(shape, rank)});
    if (entries_.size() < most) {
      entries_.push_back(std::move(entry));
      return entries_.back()->plan;
    }
    oldest_ = (oldest_ + 1) % most;
    entries_[oldest_] = std::move(entry);
    return entries_[oldest_]->plan;
  }

 private:
  static constexpr std::size_t most = 32;

  struct Entry {
    Shape shape;
    Algorithm algorithm;
    P plan;
  };
  std::vector<std::unique_ptr<Entry>> entries_;
  std::size_t oldest_ = most - 1;
};

}  // namespace meshwise::detail
