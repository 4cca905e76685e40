// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/fabric/hold.hpp"
#include "meshwise/schedule/question.hpp"
#include "meshwise/trace/traffic.hpp"

namespace meshwise {

struct Call;
struct MemorySource;

/// A message on its way. The data must stay as it is until `wait` returns.
///
/// Lifetime: destroying it before that withdraws the message, or waits until a receiver that has already begun to
/// read is done. Must not outlive its endpoint.
class Sending {
 public:
  Sending() = default;
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  virtual ~Sending() = default;

  /// Whether the data may be changed, without waiting. Errors: as `Endpoint::receive`, but for the deadline.
  virtual bool test() = 0;

  /// Returns when the data may be changed. Errors: as `Endpoint::receive`.
  virtual void wait() = 0;
};

/// A collective on its way.
///
/// Progress is made by `test` and `wait` of any operation of the same endpoint, by its blocking calls, and by the waits
/// of the same thread on other endpoints of this rank, and by a progress thread if there is one; operations of one
/// endpoint complete in the order in which they were started. Lifetime: destroying an unfinished one aborts the group
/// and waits until nobody touches the caller's buffers any more. Must not outlive its endpoint.
class Running {
 public:
  Running() = default;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  virtual ~Running() = default;

  /// Does what can be done without waiting. True when the operation is complete: the buffers are the caller's again.
  virtual bool test() = 0;

  /// Returns when the operation is complete. Errors: those of the collective.
  virtual void wait() = 0;

  /// Whether a Call with `finishing` has been finished by its moves; else the caller must do it. Known when complete.
  virtual bool finished() const = 0;
};

/// Receives that were begun and may not be complete: messages that come later calls may not take.
class Expectation {
 public:
  /// Whether a message of a sender with a tag is still to be received.
  virtual bool expects(int from, std::uint64_t tag) const = 0;

  /// Receives the first of those into its place; only if there is one. blocking: waits for it, else false if it has not
  /// arrived. deadline: of that wait. Errors: as `Endpoint::receive`; the owner gets one at its own next call too.
  virtual bool receive_next(int from, std::uint64_t tag, bool blocking, double deadline) = 0;

  /// Receives whatever has arrived, without waiting: its turn in every wait of the thread that began it. Neither ends
  /// this nor begins anything. Returns whether more may be had soon though no other message arrives: then it is called
  /// again. Errors: as `receive_next`.
  virtual bool receive_arrived() = 0;

 protected:
  ~Expectation() = default;
};

/// What a fabric can do for its collectives.
struct Capabilities {
  bool memory = false;   ///< ranks reach each other's buffers: schedules run as written, by load and store
  bool message = false;  ///< ranks send and receive: schedules run after lowering
  bool native = false;   ///< the fabric has the collectives itself
};

/// One rank's end of a group of ranks: what a fabric implements, and all that a Communicator knows of it.
///
/// To write a fabric, derive one class and make Communicators of it (`launch` is the model):
///   * `run` performs any valid Call: with *memory* through detail::perform (fabric/move.hpp) on the plans of
///     fabric/plans.hpp, publishing progress as schedule/plan.hpp defines it; with *message* only through
///     run_messages (fabric/message.hpp); with *native* by asking the fabric. It adds to `traffic()` what it moved.
///   * `start` begins one; operations are entered and complete in the order of the calls, so that a blocking one first
///     completes what was started. Every wait, for messages too, goes on with all that its thread has started on any
///     endpoint of this rank, and receives what is expected there: ranks may complete the operations of two endpoints
///     in opposite orders, and a large message is read while its receiver waits for something else.
///   * `post_send` and `receive` match by (sender, tag), in order. That receives are made in the order in which they
///     were begun is up to the caller: see `expectations`.
///   * `split` is collective and gives each rank its end of a new group, null for a negative colour.
///   * `shrink`, if the fabric can, gives those that live and come a new group, after an error.
///   * `abort` may come from any thread, ends every wait of every rank in the group, and never throws.
/// Every wait ends at its deadline, when the group is aborted, or when the awaited rank has ended. The first error
/// poisons the group: every rank gets an Error at once or at its next call. When a call throws, no rank touches the
/// caller's buffers any more. Ranks compare their calls; a difference is an Error that names both.
///
/// Ordering and lifetime: one thread at a time uses an endpoint, but for `abort` and, under its latch, a progress
/// thread. Destroying it tells the others that this rank has left the group.
class Endpoint {
 public:
  Endpoint(int rank, int size) : rank_(rank), size_(size) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The name that errors carry: the mesh axis, or what the user calls the group.
  const std::string& axis() const { return axis_; }
  void set_axis(std::string axis) {
    const detail::Hold hold(latch_);
    axis_ = std::move(axis);
  }

  /// Seconds that an operation may wait, 0 for ever.
  double deadline() const { return deadline_; }
  void set_deadline(double seconds) {
    const detail::Hold hold(latch_);
    deadline_ = seconds;
  }
  double deadline(double chosen) const { return chosen >= 0 ? chosen : deadline_; }

  /// What to hold while working on this endpoint, or on anything that a progress thread comes to through it: wrapped
  /// endpoints, expectations, traffic. Null where there is no progress thread.
  detail::Latch* latch() const { return latch_; }

  /// How often the group that this one began as has been shrunk.
  int generation() const { return generation_; }
  void set_generation(int generation) { generation_ = generation; }

  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }

  /// What has been begun here and may not be complete, the oldest first. Whoever receives a message of a program lets
  /// those that expect one of the same sender and tag receive first: see detail::receive_earlier.
  const detail::List<Expectation*>& expectations() const { return expectations_; }

  /// Adds one, the youngest. It stays where it is until `expect_no_more`, and is of the calling thread.
  void expect(Expectation& one) {
    const detail::Hold hold(latch_);
    expectations_.push_back(&one);
    try {
      expectations_changed();
    } catch (...) {
      expectations_.pop_back();
      throw;
    }
  }
  void expect_no_more(Expectation& one) noexcept {
    const detail::Hold hold(latch_);
    for (std::size_t i = 0; i < expectations_.size(); ++i) {
      if (expectations_[i] != &one) continue;
      expectations_.erase(i);
      return expectations_changed();
    }
  }

  virtual Capabilities capabilities() const = 0;

  /// Where tensors of its ranks lie, or null: in ordinary memory. It outlives them.
  virtual const MemorySource* memory() const { return nullptr; }

  /// Makes own memory one that all ranks of the job address, and undoes that; see register_buffer.
  virtual void enroll(void*, std::size_t) {}
  virtual void dismiss(void*) noexcept {}

  /// Performs a collective. Returns what `Running::finished` says.
  virtual bool run(const Call& call) = 0;

  /// What Call::digest is to be for a call that will be performed many times, where this fabric has a use for it: a
  /// hash of what all ranks must agree on.
  virtual std::uint64_t digest(const Call&) const { return 0; }

  /// Begins a collective: enters it and does what can be done at once. The call is copied, what it points to is not.
  virtual Owned<Running> start(const Call& call) = 0;
  virtual Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                                   double deadline) = 0;
  virtual void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes,
                       double deadline) = 0;

  /// Receives a message if it has arrived, without waiting; false if it has not. Errors: as `receive`.
  virtual bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) = 0;
  /// In text: which algorithms could answer a question, what they are predicted to cost, which one runs, and why.
  virtual std::string explain(const Question& question) {
    return describe(question) + ": this fabric brings its own algorithms\n";
  }

  /// In text: what every rank of the group is doing, whom it waits for, and its last calls. From any thread.
  virtual std::string flight_record() { return "this fabric keeps no record of what its ranks do\n"; }

  virtual Owned<Endpoint> split(int color, int key) = 0;

  /// A new group of the ranks that call this and live; see Communicator::shrink. seconds: negative for the deadline.
  virtual Owned<Endpoint> shrink(double) {
    Report problem;
    problem.code = Code::unsupported;
    problem.operation = "shrink";
    problem.rank = rank_;
    problem.axis = axis_;
    problem.expected = "a fabric whose groups can go on without some of their ranks";
    problem.found = "one that cannot";
    problem.remedy = "start the job anew";
    throw Error(std::move(problem));
  }

  virtual void abort(const char* reason) noexcept = 0;

 protected:
  /// The thread's waits must go on with what is expected from now on. Throws at most when there is one more.
  virtual void expectations_changed() {}

  /// Before any other thread knows of this endpoint, or when none does any more.
  void set_latch(detail::Latch* latch) { latch_ = latch; }

 private:
  int rank_;
  int size_;
  int generation_ = 0;
  detail::Latch* latch_ = nullptr;
  double deadline_ = 600;
  std::string axis_;
  Traffic traffic_;
  detail::List<Expectation*> expectations_;
};

}  // namespace meshwise
