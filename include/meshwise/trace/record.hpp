// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/fabric/wrapping.hpp"
#include "meshwise/trace/timeline.hpp"

namespace meshwise {

namespace detail {

/// An endpoint that writes what is done on it into a timeline.
class RecordingEndpoint final : public WrappingEndpoint {
 public:
  RecordingEndpoint(Owned<Endpoint> inner, Timeline& timeline)
      : WrappingEndpoint(std::move(inner)), timeline_(timeline) {}

  bool run(const Call& call) override {
    const During during(timeline_, event(Timeline::Kind::call, call));
    return WrappingEndpoint::run(call);
  }

  Owned<Running> start(const Call& call) override {
    auto* const result = new RecordedRunning(timeline_, event(Timeline::Kind::flight, call));
    Owned<Running> owned(result);
    result->hold(WrappingEndpoint::start(call));
    return owned;
  }

  Owned<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data, std::size_t bytes,
                           double deadline) override {
    auto* const result = new Recorded<Sending>(timeline_, event(Timeline::Kind::flight, verb, bytes, to));
    Owned<Sending> owned(result);
    result->hold(WrappingEndpoint::post_send(verb, to, tag, data, bytes, deadline));
    return owned;
  }

  void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes, double deadline) override {
    const During during(timeline_, event(Timeline::Kind::call, verb, bytes, from));
    WrappingEndpoint::receive(verb, from, tag, data, bytes, deadline);
  }

  bool try_receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes) override {
    if (!WrappingEndpoint::try_receive(verb, from, tag, data, bytes)) return false;
    const During arrival(timeline_, event(Timeline::Kind::call, verb, bytes, from));
    return true;
  }

  Owned<Endpoint> split(int color, int key) override {
    const During during(timeline_, event(Timeline::Kind::call, "split", 0, -1));
    return WrappingEndpoint::split(color, key);
  }

 private:
  /// For the time of a call.
  class During {
   public:
    During(Timeline& timeline, Timeline::Event what) : timeline_(timeline), mark_(timeline.begin(std::move(what))) {}
    During(const During&) = delete;
    During& operator=(const During&) = delete;
    ~During() { timeline_.end(mark_); }

   private:
    Timeline& timeline_;
    Timeline::Mark mark_;
  };

  /// A Running or a Sending, in flight from now on, whose wait is recorded.
  template <class Operation>
  class Recorded : public Operation {
   public:
    Recorded(Timeline& timeline, Timeline::Event event)
        : timeline_(timeline), flight_(timeline.begin(event)), event_(std::move(event)) {
      event_.kind = Timeline::Kind::wait;
    }
    ~Recorded() override { timeline_.end(flight_); }

    void hold(Owned<Operation> inner) { inner_ = std::move(inner); }

    bool test() override {
      if (!inner_->test()) return false;
      timeline_.end(flight_);
      return true;
    }
    void wait() override {
      const During during(timeline_, event_);
      inner_->wait();
      timeline_.end(flight_);
    }

   protected:
    const Operation& inner() const { return *inner_; }

   private:
    Timeline& timeline_;
    Timeline::Mark flight_;
    Timeline::Event event_;
    Owned<Operation> inner_;
  };

  class RecordedRunning final : public Recorded<Running> {
   public:
    using Recorded::Recorded;
    bool finished() const override { return inner().finished(); }
  };

  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return Owned<Endpoint>(new RecordingEndpoint(std::move(child), timeline_));
  }

  Timeline::Event event(Timeline::Kind kind, std::string_view verb, std::uint64_t bytes, int peer) const {
    for (const std::string_view how : {"start_", "prepare_"}) {
      if (verb.substr(0, how.size()) == how) verb.remove_prefix(how.size());
    }
    return {kind, std::string(verb), axis(), size(), peer, bytes, 0, 0};
  }
  Timeline::Event event(Timeline::Kind kind, const Call& call) const {
    return event(kind, call.verb, volume(call, rank()), -1);
  }

  Timeline& timeline_;
};

}  // namespace detail

/// The same ranks, with every operation on them written into a timeline, and on all groups that are split off: wrap the
/// world before a mesh is made of it.
///
/// communicator: becomes empty. timeline: of this rank; outlives the result and its groups.
/// Cost: see Timeline; communicators that are not recorded pay nothing. Ordering, errors, traffic: as before. A started
/// operation counts as in flight until the program sees that it is complete, by `test` or `wait`.
/// Errors: `invalid_argument` for an empty communicator.
inline Communicator record(Communicator&& communicator, Timeline& timeline) {
  return Communicator(Owned<Endpoint>(new detail::RecordingEndpoint(communicator.release("record"), timeline)));
}

}  // namespace meshwise
