// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/detail/workspace.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/owned.hpp"
#include "meshwise/fabric/endpoint.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise {

/// An ordered group of ranks, as one of them holds it: the first argument of every collective.
///
/// Made by `launch` and by `split`. A default-constructed or moved-from one, and the one that `split` gives to ranks of
/// negative colour, is empty: it belongs to no group and refuses everything but questions.
///
/// Ordering: every rank calls the collectives of one communicator in the same order; different communicators are
/// independent. One thread at a time uses a communicator, the same one as long as operations are in flight, but
/// `abort` may come from anywhere.
/// Lifetime: movable. When it dies its rank has left the group, and ranks that wait for it get `peer_left`. Ranks that
/// have made different calls without hearing of it are found out then, and end the job (see `launch`).
/// Errors: the first one poisons the group (see Endpoint); all later calls on it report the first cause.
class Communicator {
 public:
  Communicator() = default;
  explicit Communicator(Owned<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}

  bool empty() const { return endpoint_ == nullptr; }

  /// This rank's number in the group, from 0; -1 if empty.
  int rank() const { return endpoint_ ? endpoint_->rank() : -1; }

  /// The number of ranks in the group; 0 if empty.
  int size() const { return endpoint_ ? endpoint_->size() : 0; }

  /// The name that errors carry, usually that of a mesh axis.
  const std::string& name() const { return endpoint("name").axis(); }
  void set_name(std::string name) { endpoint("set_name").set_axis(std::move(name)); }

  /// Seconds that one operation may wait for others, 600 unless set, 0 for ever. Ranks may differ; `split` passes it
  /// on.
  double deadline() const { return endpoint("deadline").deadline(); }
  void set_deadline(double seconds) {
    if (!(seconds >= 0)) {
      fail("set_deadline", "seconds >= 0 (0 waits for ever)", std::to_string(seconds), "choose another time", rank());
    }
    endpoint("set_deadline").set_deadline(seconds);
  }

  /// Divides the group: ranks with the same colour form a new one, ordered by key, then by rank in this group.
  ///
  /// color: any number; negative gives an empty communicator. key: any number.
  /// Cost: collective over this group; a few small messages, one allocation per new group. The new communicator
  /// inherits deadline and name.
  Communicator split(int color, int key = 0) { return Communicator(endpoint("split").split(color, key)); }

  /// After an error: a new communicator of the ranks that are left, in their order, with which work goes on.
  ///
  /// seconds: how long to wait for ranks that live and have not come, 0 for ever; negative: the deadline. Give ranks
  /// that still compute the time to notice the error.
  /// Cost: collective over the ranks that live. It ends this group, if no error has done so, waits until nobody touches
  /// the buffers of its calls any more, and drops what was started. All ranks then wait until each of the others has
  /// called this, has left the group or has ended, or until the time is up. One allocation for the new group; what the
  /// old one has used stays until the job ends, if ranks of it have died.
  /// Agreed upon: who belongs to the new group; all its members find the same. Not agreed upon: what was complete
  /// before the error. A rank may have finished a call in which others failed: let all go on from a state that they
  /// agree on, such as the last checkpoint. What was under way in the old group reaches no buffer and no call of the
  /// new one.
  /// Lifetime: this communicator stays, and refuses everything; `world = world.shrink()` leaves it, once nothing that
  /// was started on it is left. Name and deadline are passed on. Groups that were split off are not shrunk, and go on
  /// if all their ranks do.
  /// Errors: `aborted` on a rank that comes too late: the others have gone on without it. It can do them no harm, since
  /// its calls on the old communicator fail; only what it was copying when it was stopped it copies to the end, into
  /// buffers of the call that failed, whose errors say so. A rank that throws out of its program still ends the job.
  /// Who has started processes ends the others some time after one has died (ProcessOptions::grace, 2 s) unless one of
  /// them has called this by then: ranks that compute for longer without a call need more.
  /// `invalid_argument` for the second call on the same communicator; `unsupported` by fabrics that cannot.
  Communicator shrink(double seconds = -1) {
    if (!(seconds >= 0 || seconds < 0)) {
      fail("shrink", "a number of seconds (0 waits for ever, negative: the deadline)", std::to_string(seconds),
           "choose another time", rank());
    }
    return Communicator(endpoint("shrink").shrink(seconds));
  }

  /// How often the group has been shrunk: 0 for what `launch` makes; `split` passes it on. 0 if empty.
  int generation() const { return endpoint_ ? endpoint_->generation() : 0; }

  /// Ends every present and later operation of all ranks on this communicator with an Error that carries the reason.
  /// From any thread, not collective, returns at once.
  void abort(const std::string& reason) noexcept {
    if (endpoint_) endpoint_->abort(reason.c_str());
  }

  /// A table in text: which algorithms could do an operation on vectors of so many bytes (the larger side of one rank's
  /// buffers), what they are predicted to cost, which one runs, and why. Local; the same on all ranks.
  ///
  /// in_place: as the call would be. Predictions are made for classes of sizes: powers of two, of which the table names
  /// the representative. Of a generator in the options it says its description and its rounds.
  /// Errors: `invalid_argument` for what no algorithm can do, such as a wanted one that does not fit, and for an
  /// exchange, which depends on who holds what.
  std::string explain(Operation operation, std::uint64_t bytes, const CollectiveOptions& options = {},
                      bool in_place = false) const {
    if (operation == Operation::exchange) {
      fail("explain", "an operation whose blocks are known from its kind", "exchange",
           "it has one algorithm, of one round", rank());
    }
    Question question;
    question.shape = Shape{operation, size(), 0, in_place || rooted(operation)};
    if (!options.generator.empty()) {
      return describe(question) + ": " + options.generator.description() + ", the caller's own generator, in " +
             (options.generator.supports(question.shape)
                  ? std::to_string(options.generator.rounds(question.shape)) +
                        (options.generator.rounds(question.shape) == 1 ? " round\n" : " rounds\n")
                  : std::string("no way: it does not support this shape\n"));
    }
    question.bytes = bytes;
    question.wanted = options.algorithm;
    question.lanes = options.lanes;
    question.reproducible = options.reproducible;
    Endpoint& end = endpoint("explain");
    const detail::Hold hold(end.latch());
    return end.explain(question);
  }

  /// In text, for people: what every rank of the group is doing, whom it waits for, and its last calls; first of all,
  /// who holds up the others. After an error, what it was when the ranks gave up.
  ///
  /// Local; from any thread. Written to stderr too, unless MESHWISE_LOG is off, when a group ends because a rank was
  /// waited for in vain. Of large groups some ranks are described and the others counted.
  std::string flight_record() const { return endpoint("flight_record").flight_record(); }

  /// What this rank has communicated here since the group was made.
  Traffic traffic() const {
    const Endpoint& end = endpoint("traffic");
    const detail::Hold hold(end.latch());
    return end.traffic();
  }

  /// Performs a collective given as data; the named collectives and the typed layer end here.
  ///
  /// call: `shape.ranks` is filled in, everything else is the caller's. One indirect call; no allocation once the plan
  /// of this kind of call is known. Counts one call and its volume. Returns whether a `finishing` kernel has been
  /// applied to all results (see Call).
  bool run(Call call) {
    Endpoint& end = endpoint(call.verb);
    call.shape.ranks = end.size();
    const detail::Hold hold(end.latch());
    const bool finished = end.run(call);
    ++end.traffic().calls;
    end.traffic().volume += volume(call, end.rank());
    return finished;
  }

  /// The fabric's side, for code that brings its own protocol.
  Endpoint& endpoint(const char* verb = "endpoint") const {
    if (!endpoint_) {
      fail(verb, "a communicator with at least one rank", "an empty one",
           "skip the call on ranks that are outside of the group (negative colour, moved-from)");
    }
    return *endpoint_;
  }

  /// Gives the fabric's side away, to be wrapped by another one (see WrappingEndpoint), and is empty afterwards.
  Owned<Endpoint> release(const char* verb = "release") {
    endpoint(verb);
    return std::move(endpoint_);
  }

  /// What the blocking collectives of this communicator share.
  detail::Workspace& workspace() { return workspace_; }

 private:
  Owned<Endpoint> endpoint_;
  detail::Workspace workspace_;
};

}  // namespace meshwise
