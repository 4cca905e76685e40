// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/core/deadline.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/wait.hpp"
#include "meshwise/fabric/memory/agenda.hpp"
#include "meshwise/fabric/memory/group.hpp"
#include "meshwise/fabric/memory/reporter.hpp"
#include "meshwise/fabric/memory/shared_bytes.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/schedule/contract.hpp"

namespace meshwise::detail {

/// How one thread enters calls, waits for others and leaves after an error: the protocol, without the work.
///
/// A rank enters operation s by publishing its call and its buffers; after step i it publishes progress (s, i + 2),
/// after the last one, or at once if it has none, (s, last_step). A plan says which progress of whom a step must see.
/// Before a rank touches another one's buffers for the first time in an operation it compares their calls. It enters an
/// operation when the one before is complete.
///
/// Errors. The first one poisons the group. A rank that must throw first makes sure that nobody is inside a move that
/// could touch its buffers: it marks itself as left and waits until every other rank has left too, rests, or is not
/// between its first and its last move. A rank says that it is moving before it looks at the poison, and leaving sets
/// the poison before it looks at that, both in one total order, so that one of the two sees the other. A rank rests
/// while its program computes between two calls with an operation unfinished; it says that it is here again before it
/// looks at the poison.
class MemoryMember : public MemoryReporter, protected Backlog {
 public:
  /// agenda: of this rank, the same for all its communicators; null makes a new one.
  MemoryMember(std::shared_ptr<MemoryGroup> group, int rank, std::shared_ptr<Agenda> agenda = nullptr)
      : MemoryReporter(std::move(group), rank),
        agenda_(agenda ? std::move(agenda) : std::make_shared<Agenda>()),
        failed_(group_->job()->failed()),
        hook_(group_->job()->hook()),
        translates_(!group_->job()->one_process()),
        peers_(static_cast<std::size_t>(size())),
        met_(static_cast<std::size_t>(size()), 0),
        exceptions_(std::uncaught_exceptions()) {}

  ~MemoryMember() override {
    set_background(false);
    const bool thrown = std::uncaught_exceptions() > exceptions_;
    if (!thrown) take_leave();
    if (unsettled()) context_.abandon();
    slot_.state.store(thrown ? State::unwinding : State::gone, std::memory_order_seq_cst);
    slot_.alarm.ring();
    group_->state().members.fetch_sub(1, std::memory_order_acq_rel);
    announce("has left");
  }

  void abort(const char* reason) noexcept override { abort("called abort: ", reason); }

 protected:
  using State = MemorySlot::State;

  /// How long an error waits for a rank of another process that is in a move and may be stopped.
  class Patience {
   public:
    bool over() {
      const std::int64_t now = monotonic_nanoseconds();
      if (end_ == 0) end_ = now + settle_nanoseconds;
      return now > end_;
    }

   private:
    std::int64_t end_ = 0;
  };

  /// Whether the progress of a rank in an operation is at least `step`. That it has entered is said in the line that
  /// also says what it has entered.
  struct Progressed {
    const MemorySlot& slot;
    std::uint64_t sequence;
    std::uint64_t step;

    bool operator()() const {
      if (step == 1) return slot.entered(sequence);
      return slot.progress.load(std::memory_order_acquire) >= progress_at(sequence, step);
    }
  };

  /// Ends the group because of what this rank does. From any thread.
  void abort(const char* what, const char* reason) noexcept {
    Report report;
    report.code = Code::aborted;
    try {
      report.found = "rank " + std::to_string(rank()) + " " + what + reason;
      report.ranks = {rank()};
    } catch (...) {
      // Without memory for the text the code alone must do.
    }
    if (group_->poison().put(report)) log_.write(LogLevel::debug, report.found);
  }

  /// Publishes a new call. scratch: this rank's scratch slots. harmless: it will touch nobody's memory in this call.
  void enter(const Call& call, const void* scratch, bool harmless) {
    publish_call(call, scratch);
    forget_others();
    if (harmless) publish(last_step, std::memory_order_release);
    if (stopped()) leave();
  }

  /// Takes a call, in which not all ranks compare theirs, into the hash of such calls.
  [[gnu::always_inline]] void remember(const Call& call) {
    history_ = (history_ ^ (call.digest != 0 ? call.digest >> 2 : Entry::digest(call) << 2 >> 2)) * 0x9e3779b97f4a7c15U;
    history_ ^= history_ >> 29;
  }

  /// Nobody has been met in this operation.
  void forget_others() {
    peers_[static_cast<std::size_t>(rank())] = buffers(own_);
    met_[static_cast<std::size_t>(rank())] = sequence_;
    strangers_ = size() - 1;
  }

  /// The part that the others see, for who keeps no lists of whom it has met.
  [[gnu::always_inline]] void publish_call(const Call& call, const void* scratch) {
    wait_for(call);
    rouse();
    if (slot_.state.load(std::memory_order_relaxed) != State::here) leave();
    note(sequence_ + 1, 0);
    own_.set(call, scratch, history_);
    if (translates_) translate(call);
    ++sequence_;
    slot_.write(sequence_, own_);
    slot_.alarm.ring();
    note(sequence_, 1);
  }

  /// To be called before the first move of an operation. What is ordered here had all the time of the waits before to
  /// reach the other cores; at entry, or in a line that others read, it would keep everything behind it waiting.
  void begin_moving() {
    slot_.moving.store(true, std::memory_order_seq_cst);
    if (group_->poison().set_in_order()) leave();
  }

  /// To be called after the last move, when progress has been published.
  void end_moving() { slot_.moving.store(false, std::memory_order_release); }

  /// Takes a call as what is being waited for.
  void wait_for(const Call& call) { waiting_ = Waiting{call.verb, true, Deadline(deadline(call.deadline)), 0, 0}; }

  [[noreturn, gnu::noinline]] void refuse_entry(const Call& call) {
    wait_for(call);
    leave();
  }

  /// See StepHook.
  void note(std::uint64_t sequence, std::uint64_t step) const {
    if (hook_.call != nullptr) [[unlikely]]
      hook_.call(hook_.context, sequence, step);
  }

  void publish(std::uint64_t step, std::memory_order order) {
    note(sequence_, step);
    slot_.progress.store(progress_at(sequence_, step), order);
    slot_.alarm.ring();
  }

  /// Whether there is an error, here or in the job.
  bool stopped() const { return group_->poison().set() || failed_.load(std::memory_order_acquire) != 0; }

  /// Makes what is about to be published readable in other processes: texts, the context, and the addresses of buffers
  /// at which they see them; what they do not see is marked.
  [[gnu::noinline]] void translate(const Call& call) {
    Job& job = *group_->job();
    const auto word = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
    if (call.verb != verb_) {
      text_ = job.shared_text(call.verb);
      verb_ = call.verb;
    }
    own_.word[Entry::verb] = word(text_);
    if (own_.word[Entry::generator] != 0) own_.word[Entry::generator] = word(job.shared_text(call.generator.name));
    own_.word[Entry::input] = word(reach(call, Buffer::input, call.input));
    own_.word[Entry::output] = word(reach(call, Buffer::output, call.output));
    if (const std::size_t bytes = call.regions.own_bytes; bytes > 0 && call.regions.context != nullptr) {
      std::byte* const copy = context_.take(job, bytes);
      std::memcpy(copy, call.regions.context, bytes);
      own_.word[Entry::context] = word(copy);
    }
  }

  /// Whether one of a rank's buffers is not addressed by the others.
  static bool is_foreign(const Addresses& buffers) {
    return Entry::is_hidden(buffers.input) || Entry::is_hidden(buffers.output);
  }

  const void* reach(const Call& call, Buffer buffer, const void* data) {
    if (data == nullptr) return nullptr;
    Job& job = *group_->job();
    const void* const seen = job.reach(data, 0);
    if (seen == data) return seen;
    return seen != nullptr && job.reach(data, extent(call, buffer)) == seen ? seen : Entry::hidden(data);
  }

  /// Bytes from the beginning of an own buffer to the end of what is in it.
  std::size_t extent(const Call& call, Buffer buffer) const {
    const int slots = buffer == Buffer::input ? input_slots(call.shape, rank()) : output_slots(call.shape, rank());
    std::size_t end = 0;
    for (int slot = 0; slot < slots; ++slot) {
      const Region region = call.regions.locate(call.regions.context, call.shape, buffer, rank(), slot);
      if (region.size() == 0) continue;
      const std::size_t last = region.offset + (region.repeat - 1) * region.stride + region.run;
      end = last > end ? last : end;
    }
    return end * call.element_size;
  }

  /// The whole of a call that moves nothing: everybody has entered it.
  void meet_all() {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) await(peer, 1);
    }
  }

  /// Returns when the progress of a rank in this operation is at least `step`, and its call is known to agree.
  void await(int peer, std::uint64_t step) {
    const Progressed ready{group_->slot(peer), sequence_, step};
    if (!ready()) wait(peer, ready);
    if (met_[static_cast<std::size_t>(peer)] != sequence_) meet(peer);
  }

  /// The same without waiting: whether that is so by now.
  bool reached(int peer, std::uint64_t step) {
    const Progressed ready{group_->slot(peer), sequence_, step};
    if (!ready()) {
      inspect(peer, ready, false);
      return false;
    }
    if (met_[static_cast<std::size_t>(peer)] != sequence_) meet(peer);
    return true;
  }

  template <bool blocking>
  bool arrive(int peer, std::uint64_t step) {
    if constexpr (!blocking) return reached(peer, step);
    await(peer, step);
    return true;
  }

  /// To be called before a program gets control back with an operation unfinished.
  void rest() {
    if (resting_ || slot_.state.load(std::memory_order_relaxed) != State::here) return;
    resting_ = true;
    slot_.state.store(State::resting, std::memory_order_seq_cst);
  }

  /// To be called before a rank that may rest touches memory again, or enters.
  void rouse() {
    if (!resting_) return;
    resting_ = false;
    slot_.state.store(State::here, std::memory_order_seq_cst);
    if (group_->poison().set_in_order()) leave();
  }

  /// Whether there are started operations here that waits for other things must go on with.
  void set_background(bool value) {
    if (value == background_) return;
    background_ = value;
    value ? agenda_->add(this, latch()) : agenda_->remove(this);
  }

  /// While it goes on with what was started here, this is nothing that its waits must go on with.
  void set_driving(bool value) {
    driving_ = value;
    mute_ = value && background_ ? 1 : 0;
  }
  bool driving() const { return driving_; }

  /// Whether there is anything else on the agenda.
  bool others_wait() const { return agenda_->size() > mute_; }

  const std::shared_ptr<Agenda>& agenda() const { return agenda_; }

  /// Waits for a rank. ready: see inspect. Part of what calls it: after a change of threads every return from a
  /// function is one that the processor has not foreseen.
  template <class Ready>
  [[gnu::always_inline]] void wait(int peer, const Ready& ready) {
    Backoff backoff = group_->job()->backoff(quick_);
    while (!ready()) idle(backoff, peer, ready);
  }

  /// Spends a moment of a wait for a rank. ready: see inspect.
  template <class Ready>
  [[gnu::always_inline]] void idle(Backoff& backoff, int peer, const Ready& ready) {
    if (others_wait()) {
      agenda_->advance();
    } else if (backoff.tired()) {
      return doze(backoff, peer, ready);
    }
    if (backoff.pause() && !ready()) inspect(peer, ready, true);  // others may have gone on to what ends the group
  }

  /// Sleeps until a rank does something.
  template <class Ready>
  [[gnu::noinline]] void doze(Backoff& backoff, int peer, const Ready& ready) {
    group_->slot(peer).alarm.sleep(backoff.slice(), ready);
    if (!ready()) inspect(peer, ready, true);
  }

  /// Compares calls with a rank that has entered this operation, and learns its buffers. A rank that is many
  /// operations ahead cannot be compared any more; the plan then cannot need its buffers.
  void meet(int peer) {
    std::array<std::uint64_t, 4> words;
    const MemorySlot::Met met = group_->slot(peer).meet(sequence_, own_, words);
    if (met == MemorySlot::Met::later) return;
    if (met == MemorySlot::Met::other) refuse_meeting(peer);
    peers_[static_cast<std::size_t>(peer)] = addresses(words);
    met_[static_cast<std::size_t>(peer)] = sequence_;
    --strangers_;
  }

  /// The same with a rank whose buffers are needed, which therefore cannot have left the operation: those.
  Addresses require(int peer) {
    std::array<std::uint64_t, 4> words;
    if (group_->slot(peer).meet(sequence_, own_, words) != MemorySlot::Met::same) refuse_meeting(peer);
    return addresses(words);
  }

  static Addresses addresses(const std::array<std::uint64_t, 4>& words) {
    return {reinterpret_cast<const std::byte*>(words[0]), reinterpret_cast<std::byte*>(words[1]),
            reinterpret_cast<std::byte*>(words[2]), reinterpret_cast<const void*>(words[3])};
  }

  [[noreturn, gnu::noinline]] void refuse_meeting(int peer) {
    Entry entry;
    if (!group_->slot(peer).read(sequence_, entry)) entry = Entry{};
    differ(peer, entry);
  }

  /// A rank whose buffers a move needs cannot have left the operation, if it is the same operation.
  void require_met(const Move& move) {
    if (strangers_ == 0) return;
    const auto check = [this](const std::vector<Piece>& pieces) {
      for (const Piece& piece : pieces) {
        if (met_[static_cast<std::size_t>(piece.rank)] != sequence_) differ(piece.rank, Entry{});
      }
    };
    check(move.from);
    check(move.to);
  }

  static Addresses buffers(const Entry& entry) {
    return Addresses{entry.pointer<const std::byte>(Entry::input), entry.pointer<std::byte>(Entry::output),
                     entry.pointer<std::byte>(Entry::scratch), entry.pointer<const void>(Entry::context)};
  }

  /// Looks at everything that ends a wait for a rank early. ready: whether the wait has been satisfied after all.
  /// waits: whether this is a wait at all, whose deadline runs.
  template <class Ready>
  [[gnu::noinline]] void inspect(int peer, const Ready& ready, bool waits) {
    if (stopped()) leave();
    if (waits) show_wait(peer, ready);
    const State state = group_->slot(peer).state.load(std::memory_order_acquire);
    if (state == State::gone || state == State::unwinding) {
      if (ready()) return;
      if (waiting_.collective) compare(peer);  // another call here says more than that it has left
      // An exception that ends the rank is about to be reported, and says more than that it has left.
      if (waiting_.grace == 0) waiting_.grace = monotonic_nanoseconds() + grace_nanoseconds;
      if (state == State::gone || monotonic_nanoseconds() > waiting_.grace) abandon(peer);
    }
    if (translates_ && is_dead(peer) && !ready()) bury(peer);
    if (waiting_.collective) {
      compare(peer);
      if (size() <= 2) {
        // Everybody has been compared.
      } else if (waiting_.turn = (waiting_.turn + 1) % size(); waiting_.turn != rank()) {
        compare(waiting_.turn);
      }
    }
    if (waits && waiting_.deadline.expired() && !ready()) time_out(peer);
  }

  /// Shows the others what this rank waits for.
  template <class Ready>
  void show_wait(int peer, const Ready& ready) {
    std::uint64_t step = waiting_.collective ? Awaited::anything : Awaited::message;
    if constexpr (std::is_same_v<Ready, Progressed>) step = ready.step;
    slot_.awaits.store(Awaited{peer, sequence_, step}.word(), std::memory_order_relaxed);
    slot_.looked.store(monotonic_nanoseconds(), std::memory_order_relaxed);
  }

  void compare(int peer) {
    Entry entry;
    if (disagrees(peer, entry)) differ(peer, entry);
  }

  [[noreturn]] void differ(int peer, const Entry& entry) { stop(difference(peer, entry)); }

  /// Calls in which nobody hears from everybody may have been others elsewhere. If no later call has shown it, leaving
  /// does: a rank compares a hash of all its calls with those of its neighbours, if these have left before. If not
  /// all ranks have the same, two neighbours differ.
  void take_leave() noexcept {
    if (stopped()) return;
    const std::uint64_t own = (history_ ^ sequence_ * 0x9e3779b97f4a7c15U) | 1;
    slot_.farewell.store(own, std::memory_order_seq_cst);
    for (const int peer : {(rank() + 1) % size(), (rank() + size() - 1) % size()}) {
      const std::uint64_t theirs = group_->slot(peer).farewell.load(std::memory_order_seq_cst);
      if (theirs == 0 || theirs == own) continue;
      try {
        group_->job()->fail(-1, std::make_exception_ptr(Error(parting(peer))));
      } catch (...) {
        // Without memory for the text a poisoned group must do.
        abort("ranks have made different calls");
      }
      return;
    }
  }

  /// Whether to stop waiting, after an error, for a rank that is busy with something of this one: it is of another
  /// process, which has ended or may be stopped.
  bool gives_up(int peer, Patience& patience) { return translates_ && (is_dead(peer) || patience.over()); }

  /// Whether the process of a rank has ended without a word. Asks the system every few milliseconds at most.
  bool is_dead(int peer) {
    const std::int64_t now = monotonic_nanoseconds();
    if (now < next_look_) return false;
    next_look_ = now + look_nanoseconds;
    return group_->died(peer);
  }

  /// How the process of a rank ended, which is known a little later than that it has.
  std::string ending_of(int peer) {
    std::string ending;
    Backoff backoff(true);
    Patience patience;
    while ((ending = group_->ending(peer)).empty() && !stopped() && !patience.over()) backoff.pause();
    return ending.empty() ? "has ended: it was killed, or called exit" : ending;
  }

  [[noreturn]] void bury(int peer) { stop(absence(peer, ending_of(peer))); }

  /// Those who leave may do so because another one has died.
  [[noreturn]] void abandon(int peer) {
    for (int other = 0; other < size() && translates_; ++other) {
      if (group_->died(other)) bury(other);
    }
    stop(absence(peer, ""));
  }

  [[noreturn]] void time_out(int peer) { stop(lateness(peer)); }

  /// Performs work that calls what a program brings, such as a reduction: whatever that throws ends the group.
  template <class Work>
  void guarded(const Work& work) {
    try {
      work();
    } catch (...) {
      end_group();
    }
  }

  /// In a handler: ends the group because of the exception at hand.
  [[noreturn, gnu::noinline]] void end_group() {
    std::string text = "an exception that is no std::exception";
    try {
      throw;
    } catch (const Error& error) {
      if (!group_->poison().set()) stop(error.report());
      throw;
    } catch (const std::exception& error) {
      text = error.what();
    } catch (...) {}
    Report problem = report(Code::aborted, rank());
    problem.ranks = {rank()};
    problem.expected = "a reduction that does not throw";
    problem.found = "rank " + std::to_string(rank()) + " threw: " + text;
    problem.remedy = "let reductions keep to values";
    stop(problem);
  }

  [[noreturn]] void stop(const Report& problem) {
    put(problem);
    leave();
  }

  /// Whether there is a rank, probably stopped, that may still go on with a move of an operation that has failed.
  bool unsettled() const { return busy_ >= 0; }

  /// After an error: returns when nobody can touch this rank's buffers any more, nor this rank anybody's.
  void settle() noexcept {
    resting_ = false;
    slot_.state.store(State::left, std::memory_order_seq_cst);
    slot_.alarm.ring();
    if (aside_) return;  // whoever waits for this operation settles
    Patience patience;
    for (int peer = 0; peer < size(); ++peer) {
      const MemorySlot& slot = group_->slot(peer);
      Backoff backoff = group_->job()->backoff(quick_);
      while (slot.state.load(std::memory_order_seq_cst) == State::here && slot.moving.load(std::memory_order_seq_cst)) {
        if (!backoff.pause() || !gives_up(peer, patience)) continue;
        if (!group_->died(peer)) busy_ = peer;
        break;
      }
    }
  }

  /// Throws the group's first error once nobody can touch this rank's buffers any more.
  [[noreturn]] void leave() {
    if (!group_->poison().set()) group_->poison().put(group_->job()->cause());
    settle();
    Report cause = group_->poison().cause();
    if (cause.rank >= 0 && cause.rank != rank() && cause.operation != waiting_.verb) {
      cause.origin = cause.operation + " on rank " + std::to_string(cause.rank);
    }
    cause.operation = waiting_.verb;
    cause.rank = rank();
    cause.axis = axis();
    cause.sequence = waiting_.collective ? sequence_ : 0;
    if (busy_ >= 0) {
      cause.remedy += "; rank " + std::to_string(busy_) +
                      " may be in the middle of a move, which it then completes in the buffers of its call";
    }
    throw Error(std::move(cause));
  }

  static constexpr std::int64_t grace_nanoseconds = 1'000'000'000;
  static constexpr std::int64_t look_nanoseconds = 2'000'000;
  static constexpr std::int64_t settle_nanoseconds = 50'000'000;

  std::shared_ptr<Agenda> agenda_;
  const std::atomic<std::uint32_t>& failed_;  ///< of the job
  const StepHook& hook_;
  const bool translates_;       ///< other ranks are other processes
  std::uint64_t history_ = 0;   ///< a hash of the calls so far that not all have compared
  const char* verb_ = nullptr;  ///< the last one that was translated, and what it is for others
  const char* text_ = nullptr;
  SharedBytes context_;             ///< a copy of the call's, for others
  std::vector<Addresses> peers_;    ///< buffers of the ranks that have been met in this operation
  std::vector<std::uint64_t> met_;  ///< the operation in which each rank was met last
  int strangers_ = 0;               ///< ranks that have not been met in this operation
  std::int64_t next_look_ = 0;      ///< when to ask again whether a process lives
  int busy_ = -1;                   ///< a rank whose move could not be waited for
  int exceptions_;                  ///< in flight when this was made
  int quick_ = 0;                   ///< yields since the last slow one
  bool resting_ = false;            ///< the state that the others see is `resting`
  bool background_ = false;
  bool driving_ = false;
  std::size_t mute_ = 0;  ///< items of the agenda that are this one, which is at work
  bool aside_ = false;    ///< in advance_aside
};

}  // namespace meshwise::detail
