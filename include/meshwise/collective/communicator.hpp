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
    return endpoint("explain").explain(question);
  }

  /// What this rank has communicated here since the group was made.
  Traffic traffic() const { return endpoint("traffic").traffic(); }

  /// Performs a collective given as data; the named collectives and the typed layer end here.
  ///
  /// call: `shape.ranks` is filled in, everything else is the caller's. One indirect call; no allocation once the plan
  /// of this kind of call is known. Counts one call and its volume. Returns whether a `finishing` kernel has been
  /// applied to all results (see Call).
  bool run(Call call) {
    Endpoint& end = endpoint(call.verb);
    call.shape.ranks = end.size();
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
