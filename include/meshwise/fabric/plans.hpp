// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/schedule/any_generator.hpp"
#include "meshwise/schedule/compile.hpp"
#include "meshwise/schedule/lower.hpp"

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

/// Whether every combining move of every rank combines the contributions of all ranks, which are then the results.
///
/// Since each contribution occurs once in a result, a move with as many sources as there are ranks has one of each. All
/// ranks must come to the same answer, so the moves of all of them are looked at, up to the first that says no.
inline bool finishes(const AnyGenerator& generator, const Shape& shape) {
  const bool whole = shape.operation == Operation::all_reduce || shape.operation == Operation::reduce_scatter ||
                     shape.operation == Operation::reduce;
  if (!whole || shape.ranks == 1) return false;
  const int rounds = generator.rounds(shape);
  for (int round = 0; round < rounds; ++round) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (const Move& move : generator.by(shape, rank, round)) {
        if (move.from.size() > 1 && move.from.size() != static_cast<std::size_t>(shape.ranks)) return false;
      }
    }
  }
  return true;
}

/// The part of a vector of which one move, after all ranks have entered and until all are done, combines what is in all
/// inputs, in the order of the ranks, into all outputs; -1 where a plan is anything else.
inline int common_part(const Plan& plan) {
  const auto ranks = static_cast<std::size_t>(plan.shape.ranks);
  if (plan.shape.operation != Operation::all_reduce || ranks < 2 || plan.lanes != 1 || plan.steps.size() != 1)
    return -1;
  const Step& step = plan.steps.front();
  if (step.waits.size() != ranks - 1 || plan.exit.size() != ranks - 1) return -1;
  const int part = step.move.from.empty() ? -1 : step.move.from.front().slot;
  const auto all = [&](const std::vector<Piece>& pieces, Buffer buffer) {
    if (pieces.size() != ranks) return false;
    for (int rank = 0; rank < plan.shape.ranks; ++rank) {
      if (pieces[static_cast<std::size_t>(rank)] != Piece{rank, buffer, part, 1}) return false;
    }
    return true;
  };
  return all(step.move.from, Buffer::input) && all(step.move.to, Buffer::output) ? part : -1;
}

/// A plan for memory, and what follows from it.
struct MemoryPlan {
  Plan plan;
  std::uint64_t messages = 0;  ///< foreign pieces of all steps
  bool settled = false;        ///< no output is read again, so that stores need not stay in the cache
  bool finishes = false;       ///< see detail::finishes
  int part = -1;               ///< see detail::common_part

  /// finishing: for calls with something to finish; only these ask whether the plan does it.
  static MemoryPlan make(const AnyGenerator& generator, const Shape& shape, int rank, int lanes, bool finishing) {
    MemoryPlan result{compile(generator, shape, rank, lanes), 0, generator.rounds(shape) <= 1,
                      finishing && detail::finishes(generator, shape), -1};
    result.part = common_part(result.plan);
    for (const Step& step : result.plan.steps) result.messages += foreign_pieces(step.move);
    return result;
  }
};

/// A lowered plan, and what follows from it.
struct LoweredPlan {
  MessagePlan plan;
  bool finishes = false;

  static LoweredPlan make(const AnyGenerator& generator, const Shape& shape, int rank, int lanes, bool finishing) {
    return LoweredPlan{lower(generator, shape, rank, lanes), finishing && detail::finishes(generator, shape)};
  }
};

/// The plans of one rank by kind of call. Lengths are not part of a plan, so a program needs few; the oldest goes when
/// there are too many.
template <class P>
class PlanCache {
 public:
  using Handle = std::shared_ptr<const P>;

  /// algorithm, lanes: as chosen. custom: the caller's generator where the algorithm is custom; what it plans is kept
  /// only if it is permanent. resolve(): the generator of any other algorithm, asked for a new kind of call only.
  /// Lifetime: the reference is valid until the next call; whoever needs the plan for longer copies the handle. It
  /// refers to no routes but its own copy.
  /// Errors: `invalid_argument` for a shape that the generator does not support.
  template <class Resolve>
  const Handle& find(const Shape& shape, Algorithm algorithm, const AnyGenerator& custom, int lanes, int rank,
                     const Resolve& resolve, bool finishing = false) {
    const bool own = algorithm == Algorithm::custom;
    for (const Entry& entry : entries_) {
      if (entry.shape == shape && entry.algorithm == algorithm && entry.lanes == lanes &&
          entry.finishing == finishing && (!own || entry.custom == custom)) {
        return entry.plan;
      }
    }
    const auto plan = std::make_shared<Kept>();
    Shape kept = shape;
    if (shape.routes != nullptr) {
      plan->routes = *shape.routes;
      kept.routes = &plan->routes;
    }
    plan->plan = P::make(own ? custom : resolve(), kept, rank, lanes, finishing);
    Entry entry{kept, algorithm, custom, lanes, finishing, Handle(plan, &plan->plan)};
    if (own && !custom.permanent()) {
      passing_ = std::move(entry.plan);
      return passing_;
    }
    if (entries_.size() < most) {
      entries_.push_back(std::move(entry));
      return entries_.back().plan;
    }
    oldest_ = (oldest_ + 1) % most;
    entries_[oldest_] = std::move(entry);
    return entries_[oldest_].plan;
  }

 private:
  static constexpr std::size_t most = 32;

  struct Kept {
    Routes routes;
    P plan;
  };
  struct Entry {
    Shape shape;
    Algorithm algorithm;
    AnyGenerator custom;
    int lanes;
    bool finishing;
    Handle plan;
  };
  std::vector<Entry> entries_;
  Handle passing_;  ///< the last one that is not kept
  std::size_t oldest_ = most - 1;
};

}  // namespace meshwise::detail
