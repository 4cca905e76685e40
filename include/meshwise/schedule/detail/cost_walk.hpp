// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/detail/flow.hpp"
#include "meshwise/topology/topology.hpp"

namespace meshwise::detail {

/// What a walk finds out.
struct WalkResult {
  bool finished = false;
  double seconds = 0;
  double most_bytes = 0;
  double messages = 0;
};

/// The time of a schedule on a topology: when each rank is done with each wavefront, one after the other.
///
/// Wavefront w holds round w - l of every lane l; what it moves is in flight together.
class CostWalk {
 public:
  CostWalk(Flow& flow, const Topology& topology)
      : flow_(flow), topology_(topology), ranks_(static_cast<std::size_t>(flow.shape().ranks)) {
    const int levels = static_cast<int>(topology.levels().size());
    for (int level = 0; level < levels; ++level) {
      const std::vector<int>& begins = topology.levels()[static_cast<std::size_t>(level)].begins;
      groups_.push_back(Groups{List<int>(ranks_.size()), List<Ports>(begins.size()),
                               1 / topology.levels()[static_cast<std::size_t>(level)].uplinks});
      for (std::size_t g = 0; g < begins.size(); ++g) {
        const auto end = g + 1 < begins.size() ? static_cast<std::size_t>(begins[g + 1]) : ranks_.size();
        for (auto rank = static_cast<std::size_t>(begins[g]); rank < end; ++rank) {
          groups_.back().of[rank] = static_cast<int>(g);
        }
      }
    }
  }

  /// Walks until it is done or `budget` pieces and messages have been looked at.
  WalkResult run(std::uint64_t bytes, int lanes, std::int64_t& budget) {
    const Shape& shape = flow_.shape();
    const int parts = shape.operation == Operation::exchange ? shape.routes->blocks : shape.ranks;
    bytes_per_block_ = parts == 0 ? 0 : static_cast<double>(bytes) / parts / lanes;
    ranks_.assign(ranks_.size(), Rank{});
    WalkResult result;
    const std::int64_t fronts = flow_.rounds() == 0 ? 0 : std::int64_t{flow_.rounds()} + lanes - 1;
    for (std::int64_t front = 0; front < fronts;) {
      if (!gather(front, lanes, budget)) return result;
      std::int64_t left = steady(front, lanes);  // wavefronts like this one
      front += left;
      while (left > 0) {
        budget -= static_cast<std::int64_t>(fetched_.size() + delivered_.size() + combined_.size());
        if (budget < 0) return result;
        const bool last = left == 1;
        if (!last) {
          for (Rank& rank : ranks_) rank.before = rank.ready;
        }
        step();
        const double times = !last && uniform() ? static_cast<double>(left) : 1;
        account(times);
        result.messages += times * static_cast<double>(fetched_.size() + delivered_.size());
        left = times > 1 ? 0 : left - 1;
      }
    }
    for (const Rank& rank : ranks_) {
      result.seconds = larger(result.seconds, rank.ready);
      result.most_bytes = larger(result.most_bytes, larger(rank.sent, rank.received));
    }
    result.finished = true;
    return result;
  }

 private:
  struct Rank {
    double ready = 0;  ///< when it is done with all wavefronts so far
    double next = 0;   ///< the same, the flights at hand included
    double out = 0;    ///< seconds of data that it sends
    double in = 0;
    int outs = 0;  ///< messages that it sends
    int ins = 0;
    double sent = 0;  ///< bytes in all
    double received = 0;
    double before = 0;  ///< ready, a wavefront ago
  };
  struct Ports {
    double out = 0;
    double in = 0;
  };
  struct Groups {
    List<int> of;       ///< by rank
    List<Ports> ports;  ///< by group: seconds of data over its uplinks
    double share = 1;   ///< what one transfer takes of the uplinks
  };
  /// A message with its time at full rate.
  struct Flight {
    int from = 0;
    int to = 0;
    int level = 0;  ///< where the ends meet
    double bytes = 0;
    double seconds = 0;
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  /// Collects what is in flight in a wavefront.
  bool gather(std::int64_t front, int lanes, std::int64_t& budget) {
    fetched_.clear();
    combined_.clear();
    delivered_.clear();
    const std::int64_t first = larger<std::int64_t>(0, front - (flow_.rounds() - 1));
    const std::int64_t last = smaller<std::int64_t>(lanes - 1, front);
    for (std::int64_t lane = first; lane <= last; ++lane) {
      const RoundFlow* round = flow_.round(static_cast<int>(front - lane), budget);
      if (round == nullptr) return false;
      budget -= static_cast<std::int64_t>(round->size());
      if (budget < 0) return false;
      add(fetched_, round->fetched);
      add(delivered_, round->delivered);
      combined_.append(round->combined.begin(), round->combined.end());
    }
    return true;
  }

  void add(List<Flight>& flights, const List<Transfer>& transfers) {
    const bool torus = !topology_.torus_dims().empty();
    for (const Transfer& transfer : transfers) {
      const double bytes = transfer.blocks * bytes_per_block_;
      const int level = meeting(transfer.from, transfer.to);
      const int distance = torus ? topology_.distance(transfer.from, transfer.to) : 1;
      flights.push_back(
          Flight{transfer.from, transfer.to, level, bytes, bytes * topology_.link(level).per_byte * distance});
    }
  }

  int meeting(int a, int b) const {
    std::size_t level = 0;
    while (level < groups_.size() && groups_[level].of[at(a)] != groups_[level].of[at(b)]) ++level;
    return static_cast<int>(level);
  }

  /// How many wavefronts, from this one on, have the same lanes in rounds that are alike.
  std::int64_t steady(std::int64_t front, int lanes) const {
    if (front < lanes - 1) return 1;  // another lane joins
    std::int64_t count = flow_.alike(static_cast<int>(smaller<std::int64_t>(front, flow_.rounds() - 1)));
    if (front >= flow_.rounds()) return 1;  // lanes have left
    for (std::int64_t lane = 0; lane < lanes && count > 1; ++lane) {
      count = smaller<std::int64_t>(count, flow_.alike(static_cast<int>(front - lane)));
    }
    return count;
  }

  void step() {
    fly(fetched_);
    const double seconds = topology_.per_reduced_byte() * bytes_per_block_;
    for (const RankWork& one : combined_) {
      Rank& rank = ranks_[at(one.rank)];
      rank.ready += one.blocks * seconds;
      rank.next = rank.ready;
    }
    fly(delivered_);
  }

  /// Both ends of a message are busy from when both are ready until the slowest thing that it shares is done with all.
  void fly(const List<Flight>& flights) {
    for (const Flight& flight : flights) {
      Rank& from = ranks_[at(flight.from)];
      Rank& to = ranks_[at(flight.to)];
      from.out += flight.seconds;
      ++from.outs;
      to.in += flight.seconds;
      ++to.ins;
      for (std::size_t level = 0; level < at(flight.level); ++level) {
        Groups& groups = groups_[level];
        groups.ports[at(groups.of[at(flight.from)])].out += flight.seconds * groups.share;
        groups.ports[at(groups.of[at(flight.to)])].in += flight.seconds * groups.share;
      }
    }
    for (const Flight& flight : flights) {
      Rank& from = ranks_[at(flight.from)];
      Rank& to = ranks_[at(flight.to)];
      double busy = larger(from.out, to.in);
      for (std::size_t level = 0; level < at(flight.level); ++level) {
        const Groups& groups = groups_[level];
        busy = larger(busy, groups.ports[at(groups.of[at(flight.from)])].out);
        busy = larger(busy, groups.ports[at(groups.of[at(flight.to)])].in);
      }
      const Link& link = topology_.link(flight.level);
      const double end =
          larger(from.ready, to.ready) + link.latency + link.per_message * (larger(from.outs, to.ins) - 1) + busy;
      from.next = larger(from.next, end);
      to.next = larger(to.next, end);
    }
    for (const Flight& flight : flights) {
      Rank& from = ranks_[at(flight.from)];
      Rank& to = ranks_[at(flight.to)];
      from.ready = from.next;
      to.ready = to.next;
      from.out = 0;
      from.outs = 0;
      to.in = 0;
      to.ins = 0;
      for (std::size_t level = 0; level < at(flight.level); ++level) {
        Groups& groups = groups_[level];
        groups.ports[at(groups.of[at(flight.from)])].out = 0;
        groups.ports[at(groups.of[at(flight.to)])].in = 0;
      }
    }
  }

  /// Whether the last wavefront took every rank the same time: then so do all that are like it.
  bool uniform() const {
    double least = ranks_[0].ready - ranks_[0].before;
    double most = least;
    for (const Rank& rank : ranks_) {
      least = smaller(least, rank.ready - rank.before);
      most = larger(most, rank.ready - rank.before);
    }
    return most - least <= 1e-9 * most;
  }

  /// Counts the last wavefront `times` times, and lets the time of all but the first pass.
  void account(double times) {
    for (const auto* flights : {&fetched_, &delivered_}) {
      for (const Flight& flight : *flights) {
        ranks_[at(flight.from)].sent += times * flight.bytes;
        ranks_[at(flight.to)].received += times * flight.bytes;
      }
    }
    if (times == 1) return;
    for (Rank& rank : ranks_) {
      rank.ready += (times - 1) * (rank.ready - rank.before);
      rank.next = rank.ready;
    }
  }

  Flow& flow_;
  const Topology& topology_;
  List<Rank> ranks_;
  List<Groups> groups_;
  double bytes_per_block_ = 0;
  List<Flight> fetched_;
  List<RankWork> combined_;
  List<Flight> delivered_;
};

}  // namespace meshwise::detail
