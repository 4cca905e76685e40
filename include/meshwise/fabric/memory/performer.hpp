// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/memory/attached.hpp"
#include "meshwise/fabric/memory/staged.hpp"
#include "meshwise/fabric/message.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/fabric/plans.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/select.hpp"
#include "meshwise/schedule/settings.hpp"
#include "meshwise/schedule/verify.hpp"

namespace meshwise::detail {

/// The plan of one call: for memory or for messages, neither if nothing moves. The caller keeps what it refers to.
struct CallPlan {
  const MemoryPlan* memory = nullptr;
  const LoweredPlan* lowered = nullptr;
};

/// Performs collectives by load and store on everybody's buffers, or by messages: one at a time, to the end or as far
/// as they get without waiting.
class MemoryPerformer : public MemoryStaged {
 public:
  MemoryPerformer(std::shared_ptr<MemoryGroup> group, int rank, bool speaks, std::shared_ptr<Agenda> agenda)
      : MemoryStaged(std::move(group), rank, std::move(agenda)),
        speaks_(speaks),
        least_(threshold_ / 2 / static_cast<std::uint64_t>(size())) {}

  ~MemoryPerformer() override {
    if (unsettled()) scratch_.abandon();
  }

  std::string explain(const Question& question) override {
    Question asked = question;
    asked.shape.ranks = size();
    asked.memory = !group_->messages();
    Call call;
    call.shape = asked.shape;
    call.count = asked.bytes;
    call.algorithm = asked.wanted;
    call.lanes = asked.lanes;
    call.regions.contiguous = true;
    std::string text = selector().explain(asked);
    if (is_small(call)) {
      text += "but so few bytes, in contiguous memory, take one rendezvous through windows of " +
              std::to_string(group_->windows().capacity()) + " bytes\n";
    }
    return text;
  }

 protected:
  /// The plans of a call, which must outlive its performance.
  struct Handles {
    PlanCache<MemoryPlan>::Handle memory;
    PlanCache<LoweredPlan>::Handle lowered;
    CallPlan plan() const { return {memory.get(), lowered.get()}; }
  };

  /// Valid until the next question, or as long as the handles live.
  CallPlan plan(const Call& call, Handles* keep = nullptr) {
    if (call.count == 0) return {};
    Recent& recent = recent_[static_cast<std::size_t>(call.shape.operation)];
    if (!recent.is(call)) {
      Handles handles;
      look_up(call, handles);
      recent = Recent(call, std::move(handles));
    }
    if (keep != nullptr) *keep = recent.handles;
    return recent.handles.plan();
  }

 private:
  void look_up(const Call& call, Handles& handles) {
    const Choice choice = choose(call, !group_->messages());
    const auto resolve = [&] { return selector().catalogue().find(choice.algorithm); };
    if (group_->messages()) {
      handles.lowered = lowered_.find(call.shape, choice.algorithm, call.generator, choice.lanes, rank(), resolve,
                                      call.finishing != nullptr);
    } else {
      handles.memory = plans_.find(call.shape, choice.algorithm, call.generator, choice.lanes, rank(), resolve,
                                   call.finishing != nullptr);
    }
  }

 protected:
  /// Enters an operation. call and plan stay where they are until it is complete. Whatever can fail for lack of memory
  /// happens before the others count on this rank.
  void begin(const Call& call, const CallPlan& plan) {
    prepare(call, plan);
    enter(call, scratch_.data(), plan.memory == nullptr || (active_.decided && plan.memory->plan.steps.empty()));
  }

  /// The same for an operation that has been entered, without scratch.
  void begin_entered(const Call& call, const CallPlan& plan) {
    prepare(call, plan);
    forget_others();
  }

 private:
  void prepare(const Call& call, const CallPlan& plan) {
    Active next;
    next.call = &call;
    next.plan = plan;
    if (plan.lowered != nullptr) {
      next.finishing = plan.lowered->finishes;
      messenger_.begin(*this, call, plan.lowered->plan, internal_tag | (sequence_ + 1), deadline(call.deadline),
                       next.finishing);
    } else if (plan.memory != nullptr) {
      const Plan& steps = plan.memory->plan;
      MoveOptions options{0, steps.lanes, plan.memory->finishes};
      next.finishing = options.finishing;
      next.streaming = streams(call, *plan.memory);
      if (steps.scratch_slots > 0) {
        const ScratchLayout layout = scratch_layout(call, blocks(call.shape), steps.lanes);
        options.scratch_slot = layout.slot;
        options.scratch_lane = layout.lane;
        const std::size_t needed = options.scratch_slot * static_cast<std::size_t>(steps.scratch_slots);
        scratch_.take(*group_->job(), needed);
      }
      mover_.begin(call, options);
    }
    next.decided = !translates_ || plan.memory == nullptr;
    active_ = next;
  }

 protected:
  /// Whether stores of a call may go around the caches.
  bool streams(const Call& call, const MemoryPlan& plan) const {
    return plan.settled && call.count * call.element_size >= least_ && footprint(call) >= threshold_;
  }

  /// blocking: waits for what is missing, else returns false. True: complete.
  template <bool blocking>
  bool advance() {
    if (!active_.decided && !decide<blocking>()) return false;
    if (active_.staged) return advance_staged<blocking>();
    if (active_.plan.memory != nullptr) return advance_memory<blocking>();
    if (active_.plan.lowered != nullptr) return advance_messages<blocking>();
    for (int& peer = active_.peer; peer < size(); ++peer) {
      if (peer != rank() && !arrive<blocking>(peer, 1)) return false;
    }
    return true;
  }

  /// Between processes: how the operation at hand is done, once all ranks have said which of their buffers the others
  /// address. All find the same.
  template <bool blocking>
  bool decide() {
    if (is_foreign(buffers(own_)) && windowed() && !is_attached()) {  // which is all that there is to know
      found_foreign().store(sequence_, std::memory_order_release);
      active_.decided = true;
      turn_to_windows(false);
      return true;
    }
    for (int& peer = active_.peer; peer < size(); ++peer) {
      if (peer != rank() && !arrive<blocking>(peer, 1)) return false;
    }
    bool foreign = false;
    for (int peer = 0; peer < size(); ++peer) {
      // Whoever only gives through windows may be many small operations ahead, and its entry gone. It knew of this
      // one's buffers, so that it has found the same.
      foreign = foreign || (met_[static_cast<std::size_t>(peer)] == sequence_
                                ? is_foreign(peers_[static_cast<std::size_t>(peer)])
                                : found_foreign(peer).load(std::memory_order_acquire) == sequence_);
    }
    active_.decided = true;
    if (!foreign) {
      if (active_.plan.memory->plan.steps.empty()) publish(last_step, std::memory_order_release);
      return true;
    }
    found_foreign().store(sequence_, std::memory_order_release);
    if (!windowed()) {
      turn_to_messages();
    } else if (is_attached()) {
      turn_to_attached();
    } else {
      turn_to_windows(true);
    }
    return true;
  }

  /// Whether the operation at hand, with foreign buffers, needs no messages.
  bool windowed() { return is_staged(*active_.call) && !prefers_messages(*active_.call); }

  std::atomic<std::uint64_t>& found_foreign() { return found_foreign(rank()); }
  std::atomic<std::uint64_t>& found_foreign(int peer) {
    auto& recent = group_->slot(peer).foreign;
    return recent[sequence_ % recent.size()];
  }

  /// Whether the plan at hand, made for memory that all address, does where ranks reach each other's private memory by
  /// request to the system; and whether the blocks are worth the requests and stay in the caches, which the system's
  /// stores do not go around. (Measured on two cores: 4 KiB on 2 ranks and 64 KiB on 4 and 8, which make more of them
  /// one after the other than the two rounds more of windows cost; 8 ranks with 16 MiB take twice as long as windows.)
  bool is_attached() const {
    const MemoryPlan& plan = *active_.plan.memory;
    if (!group_->job()->attaches() || !plan.settled || plan.plan.scratch_slots > 0 || plan.plan.lanes > 1) return false;
    const Call& call = *active_.call;
    const auto ranks = static_cast<std::uint64_t>(size());
    const std::uint64_t bytes = call.count * call.element_size, least = group_->job()->crowded() ? 65536 : 4096;
    return bytes >= least * ranks && bytes < threshold_ / ranks;
  }

  /// Goes on with the plan at hand of an operation that has been entered.
  void turn_to_attached() {
    try {
      attached_.begin(*active_.call, active_.finishing);
    } catch (const std::bad_alloc&) {
      Report problem = report(Code::out_of_memory, rank());
      problem.ranks = {rank()};
      problem.found = "no memory for what private buffers of other ranks hold";
      stop(problem);
    }
    active_.attached = true;
    if (active_.plan.memory->plan.steps.empty()) publish(last_step, std::memory_order_release);
  }

  /// Goes on through windows with an operation that has been entered. met: by all others, too.
  void turn_to_windows(bool met) {
    try {
      begin_staged(*active_.call, met);
    } catch (const std::bad_alloc&) {
      Report problem = report(Code::out_of_memory, rank());
      problem.ranks = {rank()};
      problem.expected = "memory for a window of " + std::to_string(window_bytes()) + " bytes";
      problem.found = "none that all ranks address";
      problem.remedy = "allow them more of it, or use buffers that they address";
      stop(problem);
    }
    active_.staged = true;
  }

  /// Goes on by messages with an operation that has been entered, since not all buffers are addressed by all.
  void turn_to_messages() {
    const Call& call = *active_.call;
    const Choice choice = choose(call, false, true);
    const auto resolve = [&] { return selector().catalogue().find(choice.algorithm); };
    active_.lowered = lowered_.find(call.shape, choice.algorithm, call.generator, choice.lanes, rank(), resolve,
                                    call.finishing != nullptr);
    active_.plan = CallPlan{nullptr, active_.lowered.get()};
    active_.finishing = active_.lowered->finishes;
    publish(last_step, std::memory_order_release);
    messenger_.begin(*this, call, active_.lowered->plan, internal_tag | sequence_, deadline(call.deadline),
                     active_.finishing);
  }

  /// Ends a complete operation. Returns whether its moves have finished it (see Call::finishing).
  bool conclude() {
    if (active_.staged) return conclude_staged();
    if (active_.plan.memory != nullptr) {
      traffic().messages += active_.plan.memory->messages;
      traffic().moved += active_.attached ? attached_.moved() : mover_.moved();
    }
    return active_.finishing;
  }

  /// After an error: nobody reads a message of this rank any more.
  void drop_messages() noexcept { messenger_.drop(); }

  static constexpr std::uint64_t split_signature = 0x73706c6974;  // tells a split from an all_gather

 private:
  /// The last call of an operation, as far as its plan depends on it, and the plan: most calls are like the one before.
  struct Recent {
    Recent() = default;
    Recent(const Call& call, Handles plans)
        : known(call.algorithm != Algorithm::custom && call.shape.routes == nullptr),
          split(call.signature == split_signature),
          commutative(call.commutative),
          reproducible(call.reproducible),
          own_context(call.regions.own_bytes > 0),
          finishing(call.finishing != nullptr),
          in_place(call.shape.in_place),
          narrow(is_narrow(call.element)),
          algorithm(call.algorithm),
          lanes(call.lanes),
          root(call.shape.root),
          bytes(call.count * call.element_size),
          handles(std::move(plans)) {}

    bool is(const Call& call) const {
      return known && bytes == call.count * call.element_size && algorithm == call.algorithm && lanes == call.lanes &&
             root == call.shape.root && in_place == call.shape.in_place && finishing == (call.finishing != nullptr) &&
             commutative == call.commutative && reproducible == call.reproducible &&
             own_context == (call.regions.own_bytes > 0) && narrow == is_narrow(call.element) &&
             split == (call.signature == split_signature) && call.shape.routes == nullptr;
    }

    bool known = false;
    bool split = false;
    bool commutative = false;
    bool reproducible = false;
    bool own_context = false;
    bool finishing = false;
    bool in_place = false;
    bool narrow = false;
    Algorithm algorithm = Algorithm::automatic;
    int lanes = 0;
    int root = 0;
    std::uint64_t bytes = 0;
    Handles handles;
  };

  /// The operation that this rank has entered, and how far it is.
  struct Active {
    const Call* call = nullptr;
    CallPlan plan;
    std::size_t step = 0;    ///< of the plan; after the last one, the exit
    std::size_t wait = 0;    ///< of that step
    int peer = 0;            ///< the next to be met where nothing moves
    bool delivered = false;  ///< all messages are done
    bool streaming = false;
    bool finishing = false;
    bool staged = false;                     ///< through windows
    bool attached = false;                   ///< by request to the system
    bool decided = true;                     ///< it is known whether all ranks address all buffers
    PlanCache<LoweredPlan>::Handle lowered;  ///< where that made it go by messages
  };

  template <bool blocking>
  bool advance_memory() {
    Active& active = active_;
    const Plan& plan = active.plan.memory->plan;
    const auto addresses = [this](int peer) -> const Addresses& { return peers_[static_cast<std::size_t>(peer)]; };
    for (const std::size_t steps = plan.steps.size(); active.step < steps; ++active.step, active.wait = 0) {
      const Step& step = plan.steps[active.step];
      if (!pass<blocking>(step.waits)) return false;
      rouse();
      if (active.step == 0) {
        begin_moving();
      } else if (stopped()) {
        leave();
      }
      require_met(step.move);
      try {
        if (active.attached) {
          perform_attached(step.move, addresses);
        } else {
          mover_.perform(step.move, step.lane, addresses, active.streaming);
        }
      } catch (const Error& error) {
        stop(error.report());
      }
      publish(active.step + 1 == steps ? last_step : active.step + 2, std::memory_order_release);
      if (active.step + 1 == steps) end_moving();
    }
    return pass<blocking>(plan.exit);
  }

  template <class Lookup>
  void perform_attached(const Move& move, const Lookup& addresses) {
    struct Reach {
      MemoryGroup& group;
      bool read(int peer, void* to, const void* from, std::size_t bytes) const {
        return group.job()->read_private(group.world_rank(peer), to, from, bytes);
      }
      bool write(int peer, void* to, const void* from, std::size_t bytes) const {
        return group.job()->write_private(group.world_rank(peer), to, from, bytes);
      }
    };
    const int refused = attached_.perform(move, addresses, Reach{*group_}, active_.streaming);
    if (refused >= 0) throw Error(out_of_reach(refused));
  }

  /// Whether all of some waits are over, from the one on that was at hand.
  template <bool blocking>
  bool pass(const std::vector<Wait>& waits) {
    const std::size_t number = waits.size();
    for (std::size_t& at = active_.wait; at < number; ++at) {
      if (!arrive<blocking>(waits[at].rank, static_cast<std::uint64_t>(waits[at].step))) return false;
    }
    return true;
  }

  template <bool blocking>
  bool advance_messages() {
    Active& active = active_;
    try {
      if (!active.delivered && !messenger_.advance<blocking>()) return false;
    } catch (...) {
      messenger_.drop();
      throw;
    }
    active.delivered = true;
    // Whoever is received from has been compared with; a rank that only sends does it here.
    const std::vector<MessageStep>& steps = active.plan.lowered->plan.steps;
    for (; active.step < steps.size(); ++active.step, active.wait = 0) {
      const std::vector<Message>& sends = steps[active.step].sends;
      for (; active.wait < sends.size(); ++active.wait) {
        if (!arrive<blocking>(sends[active.wait].peer, 1)) return false;
      }
    }
    return true;
  }

  Selector& selector() {
    if (!selector_) selector_ = std::make_unique<Selector>(group_->topology(), group_->job()->settings(), speaks_);
    return *selector_;
  }

  /// Whether a measured table has something better than windows for a call with foreign buffers.
  bool prefers_messages(const Call& call) {
    const SelectionTable& table = group_->job()->settings().table;
    return !table.empty() && selector().rule(question(call, false, true)) != nullptr;
  }

  /// See Question::narrow.
  static constexpr bool is_narrow(ElementKind kind) {
    constexpr auto bit = [](ElementKind one) { return 1U << static_cast<unsigned>(one); };
    constexpr unsigned all =
        bit(ElementKind::bf16) | bit(ElementKind::f16) | bit(ElementKind::f8e4m3) | bit(ElementKind::f8e5m2);
    return (all & bit(kind)) != 0;
  }

  /// memory: whether schedules run on memory, else by messages. foreign: because of foreign buffers.
  Choice choose(const Call& call, bool memory, bool foreign = false) {
    if (call.signature == split_signature) return Choice{Algorithm::direct, 1};
    if (call.algorithm == Algorithm::custom) {
      require_fit(call);
      return Choice{Algorithm::custom, call.lanes > 0 ? call.lanes : 1};
    }
    return selector().choose(question(call, memory, foreign));
  }

  static Question question(const Call& call, bool memory, bool foreign) {
    Question question;
    question.shape = call.shape;
    question.bytes = call.count * call.element_size;
    question.memory = memory;
    question.foreign = foreign;
    question.commutative = call.commutative;
    question.reproducible = call.reproducible;
    question.narrow = combines(call.shape.operation) && is_narrow(call.element);
    question.one_round = call.regions.own_bytes > 0;
    question.wanted = call.algorithm;
    question.lanes = call.lanes;
    return question;
  }

  /// Refuses a caller's own generator that cannot do what is asked for.
  void require_fit(const Call& call) {
    const AnyGenerator& generator = call.generator;
    std::string wanted;
    if (!generator.supports(call.shape)) {
      wanted = std::string("an algorithm for ") + operation_name(call.shape.operation) +
               (call.shape.in_place ? " in place" : "") + " on " + std::to_string(size()) + " ranks";
    } else if (call.regions.own_bytes > 0 &&
               (generator.rounds(call.shape) > 1 || generator.scratch_slots(call.shape) > 0)) {
      wanted = "an algorithm of one round without scratch, since every rank knows its own buffers only";
    } else if (size() <= most_verified && !verdict(call).ok()) {
      const Verdict& found = verdict(call);
      wanted = std::string("an algorithm that is right (see verify); this one has a fault: ") + text(found.fault) +
               ", round " + std::to_string(found.round) + ", rank " + std::to_string(found.rank);
    } else if (combines(call.shape.operation) && (call.reproducible || !call.commutative) && !proven(call)) {
      wanted = std::string("an algorithm that is proven to combine in rank order, since the call is ") +
               (call.reproducible ? "reproducible" : "of a reduction that does not commute");
    } else {
      return;
    }
    fail(call.verb, wanted, generator.description(), "choose another algorithm", rank());
  }

  /// Whether the caller's own generator keeps the order that the call needs: that of the ranks, and for reproducible
  /// reductions their brackets and roundings too.
  bool proven(const Call& call) {
    if (size() > most_proven) return false;
    const Verdict& found = verdict(call);
    return found.ok() && (call.reproducible ? found.canonical : found.in_rank_order);
  }

  /// What is known about the caller's own generator. Remembered for permanent ones; valid until the next question.
  const Verdict& verdict(const Call& call) {
    for (const Verified& one : verified_) {
      if (one.shape == call.shape && one.generator == call.generator) return one.verdict;
    }
    Verified fresh{call.shape, call.generator, verify(call.generator, call.shape)};
    if (!call.generator.permanent() || call.shape.routes != nullptr) {
      passing_ = fresh.verdict;
      return passing_;
    }
    if (verified_.size() >= most_remembered) verified_.clear();
    verified_.push_back(std::move(fresh));
    return verified_.back().verdict;
  }

  struct Verified {
    Shape shape;
    AnyGenerator generator;
    Verdict verdict;
  };
  static constexpr std::size_t most_remembered = 64;
  static constexpr int most_verified = 64;  ///< groups for whom every generator of a caller is verified
  static constexpr int most_proven = 1024;  ///< and for whom one is if order matters

  bool speaks_;
  std::uint64_t least_;  ///< no footprint of fewer bytes in a vector reaches the threshold
  SharedBytes scratch_;
  Mover mover_;
  AttachedMover attached_;
  Messenger messenger_;
  PlanCache<MemoryPlan> plans_;
  PlanCache<LoweredPlan> lowered_;
  std::array<Recent, static_cast<std::size_t>(operation_count)> recent_;
  std::unique_ptr<Selector> selector_;  ///< from the first call on that moves something
  Active active_;
  std::vector<Verified> verified_;
  Verdict passing_;  ///< the last one that is not remembered
};

}  // namespace meshwise::detail
