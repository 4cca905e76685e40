// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/core/deadline.hpp"
#include "meshwise/fabric/memory/entry.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/slot.hpp"

namespace meshwise::detail {

/// What the ranks of a group are doing, as far as their slots show it: where each one is, whom it waits for, and who
/// holds up the others.
///
/// Looks without stopping anybody, so that what it sees of two ranks is not of the same instant. Whom a rank waits for
/// shows once it has waited for about a millisecond.
class FlightRecord {
 public:
  /// Looks. Cost: some lines of memory of each rank, and of processes one system call for each.
  explicit FlightRecord(MemoryGroup& group) : group_(group), size_(group.size()) {
    ranks_.reserve(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) ranks_.push_back(look(rank));
    const std::int64_t now = monotonic_nanoseconds();
    for (int rank = 0; rank < size_; ++rank) {
      Seen& one = at(rank);
      newest_ = one.sequence > newest_ ? one.sequence : newest_;
      if (one.looked != 0) one.quiet = now - one.looked;
      if (waits(one)) {
        one.waits_for = one.awaited.rank;
        at(one.awaited.rank).awaited_by++;
      }
    }
  }

  /// The rank that a rank waits for; -1: nobody.
  int waits_for(int rank) const { return at(rank).waits_for; }

  /// Whether a rank keeps others waiting, or has not come where some are, and waits for nobody itself.
  bool holds_up(int rank) const {
    const Seen& one = at(rank);
    return one.waits_for < 0 && (one.awaited_by > 0 || one.sequence < newest_);
  }

  /// name: of the group; may be empty.
  std::string text(const std::string& name) const {
    std::string text =
        "flight record of " + (name.empty() ? std::string("a group") : name) + ", " + ranks(size_) + ":\n";
    int named = 0, more = 0;
    for (int rank = 0; rank < size_; ++rank) {
      if (!holds_up(rank)) continue;
      if (++named > most_lines) {
        ++more;
        continue;
      }
      text += "  rank " + std::to_string(rank) + (at(rank).awaited_by > 0 ? " holds up others: " : " is behind: ");
      text += where(rank) + "\n";
    }
    if (more > 0) text += "  and " + std::to_string(more) + " more\n";
    text += chains();
    return text + each();
  }

 private:
  using State = MemorySlot::State;
  static constexpr int most_lines = 16;                 ///< ranks that are described
  static constexpr int most_chains = 8;                 ///< lines on who waits for whom
  static constexpr int most_links = 8;                  ///< of a chain, and ranks that are listed
  static constexpr int most_before = 3;                 ///< calls before the last one
  static constexpr std::int64_t current = 100'000'000;  ///< a rank that waits has looked around by then
  static constexpr std::int64_t silent = 1'000'000'000;

  struct Seen {
    State state = State::here;
    bool dead = false;
    bool complete = false;  ///< its last call, which was small
    std::uint64_t sequence = 0;
    std::uint64_t step = 0;
    Awaited awaited;
    std::int64_t looked = 0;
    std::int64_t quiet = 0;  ///< nanoseconds since it has looked
    int waits_for = -1;
    int awaited_by = 0;
  };

  Seen& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Seen& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  Seen look(int rank) {
    const MemorySlot& slot = group_.slot(rank);
    Seen seen;
    seen.awaited = Awaited::of(slot.awaits.load(std::memory_order_relaxed));
    seen.looked = slot.looked.load(std::memory_order_relaxed);
    const std::uint64_t progress = slot.progress.load(std::memory_order_acquire);
    seen.sequence = sequence_of(progress);
    seen.step = step_of(progress);
    for (std::size_t k = 0; k < MemorySlot::kept && slot.entered(seen.sequence + 1); ++k) {
      ++seen.sequence;
      seen.step = 1;
    }
    Windows& windows = group_.windows();
    seen.complete = windows.capacity() > 0 && seen.sequence > 0 &&
                    windows.finished(rank).load(std::memory_order_acquire) >= seen.sequence;
    seen.state = slot.state.load(std::memory_order_acquire);
    seen.dead = group_.died(rank);
    return seen;
  }

  /// Whether what a rank has said that it waits for can still be what it waits for.
  bool waits(const Seen& one) const {
    const Awaited& awaited = one.awaited;
    if (one.dead || one.state >= State::unwinding || awaited.rank < 0 || awaited.rank >= size_) return false;
    const bool gave_up = one.state == State::left || one.state == State::shrinking;
    const bool fresh = gave_up || one.quiet < current;
    if (awaited.step == Awaited::message) return fresh;
    if (one.complete || !awaited.is_of(one.sequence)) return false;
    const Seen& other = at(awaited.rank);
    if (other.sequence != one.sequence) return other.sequence < one.sequence;
    return awaited.step == Awaited::anything ? fresh : other.step < awaited.step;
  }

  static std::string ranks(int number) { return std::to_string(number) + (number == 1 ? " rank" : " ranks"); }

  std::string call(int rank, std::uint64_t number) const {
    Entry entry;
    std::string text = "call " + std::to_string(number);
    if (group_.slot(rank).read(number, entry)) text += " " + entry.describe();
    return text;
  }

  static std::string seconds(std::int64_t nanoseconds) {
    const std::int64_t tenths = nanoseconds / 100'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
  }

  /// Where a rank is, and whom it waits for.
  std::string where(int rank) const {
    const Seen& one = at(rank);
    std::string text;
    if (one.dead) {
      const std::string ending = group_.ending(rank);
      text = "its process " + (ending.empty() ? std::string("has ended") : ending) + "; ";
    } else if (one.state == State::gone) {
      text = "has left the group; ";
    } else if (one.state == State::unwinding) {
      text = "has left the group because of an exception; ";
    }
    if (one.sequence == 0) {
      text += "no collective call so far";
    } else if (one.complete) {
      text += "between calls, after " + call(rank, one.sequence);
    } else if (one.step == last_step) {
      text += "has done its part of " + call(rank, one.sequence);
    } else {
      const std::uint64_t steps = one.step - 1;
      text += "in " + call(rank, one.sequence) + ", ";
      text += steps == 0   ? std::string("entered")
              : steps == 1 ? std::string("after 1 step")
                           : "after " + std::to_string(steps) + " steps";
    }
    if (one.state == State::resting) text += ", which goes on in the background";
    const bool gave_up = one.state == State::left || one.state == State::shrinking;
    if (gave_up) text += ", given up after an error";
    if (one.waits_for >= 0) {
      text += gave_up ? ", waited for " : ", waits for ";
      if (one.awaited.step == Awaited::message) text += "a message of or to ";
      text += "rank " + std::to_string(one.waits_for);
    }
    if (one.state == State::shrinking) text += ", waits for a new generation";
    const bool waiting = one.waits_for >= 0 || (one.awaited.rank >= 0 && one.awaited.is_of(one.sequence));
    if (one.state == State::here && !one.dead && !one.complete && waiting && one.quiet > silent) {
      text += ", no sign of life for " + seconds(one.quiet);
    }
    return text;
  }

  std::string before(int rank) const {
    std::string text;
    const std::uint64_t last = at(rank).sequence;
    for (std::uint64_t number = last > most_before ? last - most_before : 1; number < last; ++number) {
      text += (text.empty() ? "; before: " : ", ") + call(rank, number);
    }
    return text;
  }

  /// "rank 2 waits for rank 1, which waits for rank 0": one line for all that wait for the same one and for whom nobody
  /// waits.
  std::string chains() const {
    std::string text;
    int lines = 0;
    std::vector<char> told(ranks_.size(), 0);
    for (const bool circles : {false, true}) {
      for (int rank = 0; rank < size_; ++rank) {
        const Seen& one = at(rank);
        if (one.waits_for < 0 || told[static_cast<std::size_t>(rank)] != 0 || (!circles && one.awaited_by > 0))
          continue;
        std::vector<int> same;
        for (int other = rank; other < size_; ++other) {
          const Seen& two = at(other);
          if (two.waits_for != one.waits_for || (circles ? other != rank : two.awaited_by > 0)) continue;
          same.push_back(other);
          told[static_cast<std::size_t>(other)] = 1;
        }
        const std::string told_line = chain(same, told);
        if (++lines <= most_chains) text += "  " + told_line + "\n";
      }
    }
    if (lines > most_chains) text += "  and " + std::to_string(lines - most_chains) + " more such chains\n";
    return text;
  }

  std::string chain(const std::vector<int>& same, std::vector<char>& told) const {
    std::string text = same.size() == 1 ? "rank " : "ranks ";
    for (std::size_t k = 0; k < same.size() && k < most_links; ++k) {
      text += (k == 0 ? "" : ", ") + std::to_string(same[k]);
    }
    if (same.size() > most_links) text += " and " + std::to_string(same.size() - most_links) + " more";
    std::vector<int> path{same.front()};
    for (;;) {
      const int next = at(path.back()).waits_for;
      if (next < 0) return text;
      text += path.size() > 1 ? ", which waits for rank " : same.size() == 1 ? " waits for rank " : " wait for rank ";
      text += std::to_string(next);
      for (const int passed : path) {
        if (passed == next) return text + ": they wait for each other";
      }
      if (path.size() == most_links) return text + ", and so on";
      told[static_cast<std::size_t>(next)] = 1;
      path.push_back(next);
    }
  }

  /// A line for each rank; of large groups those that hold others up, then those that are behind or wait, and how many
  /// there are besides.
  std::string each() const {
    std::vector<int> order;
    const auto take = [&](const auto& which) {
      for (int rank = 0; rank < size_ && order.size() < most_lines; ++rank) {
        if (which(rank)) order.push_back(rank);
      }
    };
    if (size_ <= most_lines) {
      take([](int) { return true; });
    } else {
      take([this](int rank) { return holds_up(rank); });
      take([this](int rank) { return !holds_up(rank) && at(rank).sequence < newest_; });
      take([this](int rank) { return !holds_up(rank) && at(rank).sequence == newest_; });
    }
    std::string text;
    for (const int rank : order) {
      text += "rank " + std::to_string(rank);
      if (group_.world_rank(rank) != rank) text += " (" + std::to_string(group_.world_rank(rank)) + " of the job)";
      text += ": " + where(rank) + before(rank) + "\n";
    }
    int waiting = 0, others = 0;
    for (int rank = 0; rank < size_; ++rank) {
      bool told = false;
      for (const int one : order) told = told || one == rank;
      if (told) continue;
      ++(at(rank).waits_for >= 0 ? waiting : others);
    }
    if (waiting + others > 0) {
      text += "and " + ranks(waiting + others) + " more, of which " + std::to_string(waiting) + " wait for others\n";
    }
    return text;
  }

  MemoryGroup& group_;
  int size_;
  std::uint64_t newest_ = 0;
  std::vector<Seen> ranks_;
};

}  // namespace meshwise::detail
