// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/log.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/memory/flight_record.hpp"
#include "meshwise/fabric/memory/group.hpp"

namespace meshwise::detail {

/// What a rank has to say about a group: how calls differ, who is late, what everybody does. It reads what the others
/// show, and waits for nobody.
class MemoryReporter : public Endpoint {
 public:
  MemoryReporter(std::shared_ptr<MemoryGroup> group, int rank)
      : Endpoint(rank, group->size()),
        group_(std::move(group)),
        slot_(group_->slot(rank)),
        log_(group_->job()->settings().log, group_->world_rank(rank)) {}

  std::string flight_record() override { return FlightRecord(*group_).text(axis()); }

  /// Says how the job has been started, for all of it.
  void introduce() const noexcept {
    if (!log_.says(LogLevel::info)) return;
    try {
      const Job& job = *group_->job();
      Log(job.settings().log)
          .write(LogLevel::info, std::to_string(size()) + (job.one_process() ? " threads" : " processes") +
                                     " as ranks, by " + (group_->messages() ? "messages" : "memory") + ", on " +
                                     std::to_string(job.cores()) + " cores" +
                                     (job.crowded() ? ", which are fewer: who waits gives its core away at once" : ""));
    } catch (...) {
      // Without memory for the text nothing is said.
    }
  }

  /// Says what has become of this rank in its group, to who wants to know it all.
  void announce(const char* what) const noexcept {
    if (!log_.says(LogLevel::debug)) return;
    try {
      const std::string name = axis().empty() ? std::string("a group") : "group " + axis();
      log_.write(LogLevel::debug, what + (" " + name) + " of " + std::to_string(size()) + " as rank " +
                                      std::to_string(rank()) + ", generation " + std::to_string(generation()));
    } catch (...) {
      // Without memory for the text nothing is said.
    }
  }

 protected:
  /// What this rank is waiting for, for errors.
  struct Waiting {
    const char* verb = "";
    bool collective = false;
    Deadline deadline;
    std::int64_t grace = 0;  ///< when to give up on a rank that is unwinding
    int turn = 0;            ///< the next rank to compare calls with
  };

  /// Whether a rank is known to have entered this operation with another call, which is then in `entry`.
  bool disagrees(int peer, Entry& entry) const {
    return group_->slot(peer).read(sequence_, entry) && !entry.agrees(own_);
  }

  Report report(Code code, int peer) const {
    Report result;
    result.code = code;
    result.operation = waiting_.verb;
    result.rank = rank();
    result.ranks = {rank(), peer};
    return result;
  }

  Report difference(int peer, const Entry& entry) const {
    Report problem = report(Code::mismatch, peer);
    Entry mine = own_, theirs = entry;
    const std::uint64_t back = entry.word[Entry::verb] != 0 ? first_difference(peer, mine, theirs) : 0;
    contrast(problem, peer, mine, theirs, sequence_ - back);
    if (back > 0) problem.found += ", " + std::to_string(back) + (back == 1 ? " call" : " calls") + " before this one";
    return problem;
  }

  /// Says how the calls of this rank and another one differ, which are operation `number`.
  void contrast(Report& problem, int peer, const Entry& mine, const Entry& theirs, std::uint64_t number) const {
    const bool known = theirs.word[Entry::verb] != 0;
    problem.expected = "the same call on all ranks";
    problem.found = "rank " + std::to_string(rank()) + ": " + mine.describe() + ", rank " + std::to_string(peer) +
                    ": " + (known ? theirs.describe() : std::string("a later call"));
    std::string difference;
    if (known && Entry::nearly_agree(mine, theirs)) {
      difference = CallNotes::difference(slot_.notes, group_->slot(peer).notes, number, rank(), peer);
    }
    if (difference.empty()) difference = known ? Entry::difference(mine, theirs) : "their order";
    problem.remedy = "the calls differ in " + difference;
  }

  /// A call in which nobody heard from everybody may have been another one elsewhere, which shows in the signatures of
  /// all later ones. Finds the first that differs, as far as calls are kept; returns how many calls ago it was.
  std::uint64_t first_difference(int peer, Entry& mine, Entry& theirs) const {
    const std::uint64_t oldest = sequence_ + 1 > MemorySlot::kept ? sequence_ + 1 - MemorySlot::kept : 1;
    for (std::uint64_t number = oldest; number < sequence_; ++number) {
      Entry a, b;
      if (!slot_.read(number, a) || !group_->slot(peer).read(number, b) || a.agrees(b)) continue;
      mine = a;
      theirs = b;
      return sequence_ - number;
    }
    return 0;
  }

  /// The first difference between the calls of this rank and one that has left, as far as they are kept.
  Report parting(int peer) const {
    const MemorySlot& other = group_->slot(peer);
    const std::uint64_t reached = sequence_of(other.progress.load(std::memory_order_acquire));
    const std::uint64_t last = reached > sequence_ ? reached : sequence_;
    Report problem = report(Code::mismatch, peer);
    problem.axis = axis();
    Entry mine, theirs;
    for (problem.sequence = last + 1 > MemorySlot::kept ? last + 1 - MemorySlot::kept : 1; problem.sequence <= last;
         ++problem.sequence) {
      const bool here = slot_.read(problem.sequence, mine);
      const bool there = other.read(problem.sequence, theirs);
      if (here && there) {
        if (mine.agrees(theirs)) continue;
        problem.operation = mine.pointer<const char>(Entry::verb);
        contrast(problem, peer, mine, theirs, problem.sequence);
        problem.found += ", which showed when they left the group";
        return problem;
      }
      if (problem.sequence <= (reached < sequence_ ? reached : sequence_)) continue;  // not kept any more
      const Entry& more = here ? mine : theirs;
      problem.operation = more.pointer<const char>(Entry::verb);
      problem.expected = "as many calls on all ranks when they leave the group";
      problem.found = "rank " + std::to_string(here ? rank() : peer) + ": " + more.describe() + ", after which rank " +
                      std::to_string(here ? peer : rank()) + " had left";
      problem.remedy = "let all ranks make the same calls before they return";
      return problem;
    }
    problem.operation = "leaving the group";
    problem.sequence = 0;
    problem.expected = "the same calls on all ranks";
    problem.found = "rank " + std::to_string(rank()) + " and rank " + std::to_string(peer) +
                    " with others, more than " + std::to_string(MemorySlot::kept) + " calls ago";
    problem.remedy = "call a barrier more often to find out where";
    return problem;
  }

  std::string what(int peer) const {
    if (waiting_.collective) return own_.describe();
    return std::string(waiting_.verb) + " with rank " + std::to_string(peer);
  }

  /// Names every rank that has not come to this operation, and how far it is; if all have, the one waited for.
  Report lateness(int peer) const {
    Report problem = report(Code::timed_out, peer);
    problem.ranks.clear();
    problem.expected = what(peer) + " within " + std::to_string(waiting_.deadline.seconds()) + " s";
    problem.found = "rank " + std::to_string(rank()) + " still waiting for ";
    for (int late = 0; waiting_.collective && late < size(); ++late) {
      const std::uint64_t reached = sequence_of(group_->slot(late).progress.load(std::memory_order_acquire));
      if (reached >= sequence_ || group_->slot(late).entered(sequence_)) continue;
      problem.ranks.push_back(late);
      if (problem.ranks.size() > most_named) continue;
      if (problem.ranks.size() > 1) problem.found += "; ";
      problem.found += "rank " + std::to_string(late) + ", which has ";
      problem.found += reached == 0 ? std::string("made no collective call here yet")
                                    : "done " + std::to_string(reached) + " of the calls here";
    }
    if (problem.ranks.size() > most_named) {
      problem.found += "; and " + std::to_string(problem.ranks.size() - most_named) + " more ranks";
    }
    const bool several = problem.ranks.size() > 1;
    if (problem.ranks.empty()) {
      problem.found += "rank " + std::to_string(peer) + (waiting_.collective ? ", which has entered it" : "");
      problem.ranks = {follow(peer, problem.found)};
    }
    problem.remedy = std::string("look at what ") + (several ? "those ranks do" : "that rank does") +
                     ", or allow more time (set_deadline)";
    return problem;
  }

  /// Whoever is waited for may wait for others itself: says so, and returns the one where that ends.
  int follow(int peer, std::string& text) const {
    const FlightRecord record(*group_);
    int last = peer;
    for (int links = 0; links < size(); ++links) {
      const int next = record.waits_for(last);
      if (next < 0 || next == rank() || next == peer) break;
      text += ", which waits for rank " + std::to_string(next);
      last = next;
    }
    return last;
  }

  /// A rank that has left the group, or whose process has ended in some way.
  Report absence(int peer, const std::string& ending) const {
    Report problem = report(Code::peer_left, peer);
    problem.expected = "rank " + std::to_string(peer) + " to take part in " + what(peer);
    problem.found = "that " + (ending.empty() ? std::string("it has left the group") : "its process " + ending);
    problem.remedy = ending.empty() ? "let all ranks make the same calls before they return" : "look for what ended it";
    return problem;
  }

  /// Ends the group because of an error, unless there is one already. What the ranks were doing when one of them was
  /// missed is said by who misses it first, and looked at before the others hear of it.
  void put(Report problem) noexcept {
    const bool missed = problem.code == Code::timed_out || problem.code == Code::peer_left;
    const LogLevel level = missed ? LogLevel::error : LogLevel::debug;
    std::string text;
    if (log_.says(level) && !group_->poison().set()) {
      try {
        if (missed) text = "\n" + flight_record();
      } catch (...) {
        // Without memory for the text there is none.
      }
    }
    if (!group_->poison().put(problem) || !log_.says(level)) return;
    try {
      problem.axis = axis();
      problem.sequence = waiting_.collective ? sequence_ : 0;
      log_.write(level, Error(std::move(problem)).what() + text);
    } catch (...) {
      // The same.
    }
  }

  static constexpr std::size_t most_named = 8;  ///< late ranks that the text of an error names

  std::shared_ptr<MemoryGroup> group_;
  MemorySlot& slot_;
  Log log_;
  std::uint64_t sequence_ = 0;
  Entry own_;
  Waiting waiting_;
};

}  // namespace meshwise::detail
