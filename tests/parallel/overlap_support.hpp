// SPDX-License-Identifier: Apache-2.0
// Backwards and forwards that take as long as they say, over a network that is as slow as it says, with overlap and
// without: what a rank's timeline shows of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/delaying/delayed.hpp"
#include "meshwise/fabric/wrapping.hpp"
#include "meshwise/mesh/mesh.hpp"
#include "meshwise/parallel/zero.hpp"
#include "meshwise/trace/overlap.hpp"
#include "meshwise/trace/record.hpp"

namespace overlapping {

using namespace meshwise;
using Grid = Mesh<dp>;
using Whole = Tensor<float, Dims<flat>, Layout<Grid>>;
using Owed = Tensor<float, Dims<flat>, Layout<Grid, Partial<dp>>>;

/// A communicator on which whatever is started has been waited for: overlap off.
class WaitingEndpoint final : public WrappingEndpoint {
 public:
  using WrappingEndpoint::WrappingEndpoint;
  Owned<Running> start(const Call& call) override {
    auto running = WrappingEndpoint::start(call);
    running->wait();
    return running;
  }

 private:
  Owned<Endpoint> wrap(Owned<Endpoint> child) override {
    return Owned<Endpoint>(new WaitingEndpoint(std::move(child)));
  }
};

/// A model of equal layers.
struct TimedModel {
  int layers = 8;
  std::size_t parameters = 3001;  // of each layer
  double forward = 1e-3;          // seconds of each layer; the backward takes twice as long
  double transfer = 0.8e-3;       // of one reduce_scatter or all_gather of a layer between two ranks
  double start = 0.05e-3;         // alpha of the network

  Delays delays() const {
    Delays delays;
    delays.alpha = start;
    delays.beta = transfer / (static_cast<double>(parameters) / 2 * sizeof(float));
    return delays;
  }
  double compute() const { return 3 * forward * layers; }
};

/// How computing takes time: on a virtual clock, or on the machine's.
class Computing {
 public:
  Computing(Timeline& timeline, VirtualClock* clock) : timeline_(timeline), clock_(clock) {}
  void operator()(const std::string& what, double seconds) const {
    const Timeline::Span span(timeline_, what);
    if (clock_ != nullptr) return clock_->advance(seconds);
    const std::int64_t end = monotonic_nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
    while (monotonic_nanoseconds() < end) {}
  }

 private:
  Timeline& timeline_;
  VirtualClock* clock_;
};

/// A step of data parallelism with a bucket for each layer.
inline void step_with_buckets(const Grid& mesh, const TimedModel& shape, const Computing& compute) {
  GradientBuckets<dp, float, Grid> buckets(mesh, shape.parameters * sizeof(float));
  std::vector<GradientBuckets<dp, float, Grid>::Ticket<Whole>> tickets;
  for (int l = 0; l < shape.layers; ++l) tickets.push_back(buckets.expect<Whole>({shape.parameters}));
  for (int l = 0; l < shape.layers; ++l) compute("forward " + std::to_string(l), shape.forward);
  for (int l = shape.layers; l-- > 0;) {
    compute("backward " + std::to_string(l), 2 * shape.forward);
    buckets.add(tickets[static_cast<std::size_t>(l)], Owed(mesh, {shape.parameters}));
  }
  buckets.finish();
}

/// A step of stage 3 with a unit for each layer.
inline void step_of_zero3(const Grid& mesh, const TimedModel& shape, const Computing& compute) {
  using Z = Zero<Zero3<dp>, float, Grid>;
  Z zero(mesh);
  std::vector<Z::Ticket<Whole>> tickets;
  for (int l = 0; l < shape.layers; ++l) {
    zero.begin_unit();
    tickets.push_back(zero.add(Whole(mesh, {shape.parameters})));
  }
  for (int l = 0; l < shape.layers; ++l) {
    zero.forward(static_cast<std::size_t>(l),
                 [&](const auto&) { compute("forward " + std::to_string(l), shape.forward); });
  }
  for (int l = shape.layers; l-- > 0;) {
    const auto unit = static_cast<std::size_t>(l);
    zero.backward(unit, [&](const auto&, auto& gradients) {
      compute("backward " + std::to_string(l), 2 * shape.forward);
      gradients.add(tickets[unit], Owed(mesh, {shape.parameters}));
    });
  }
  zero.finish();
  zero.update([](std::size_t, auto& w, const auto&) { (void)w.mutable_local(); });
}

using TimedStep = void (*)(const Grid&, const TimedModel&, const Computing&);

/// Runs a step on a rank and records it. world: becomes empty.
inline void record_step(Communicator&& world, TimedStep step, const TimedModel& shape, bool overlaps,
                        Timeline& timeline, VirtualClock* clock) {
  Communicator line =
      clock == nullptr ? delayed(std::move(world), shape.delays()) : delayed(std::move(world), shape.delays(), *clock);
  line = record(std::move(line), timeline);
  if (!overlaps) line = Communicator(Owned<Endpoint>(new WaitingEndpoint(line.release())));
  const Grid mesh(line, {line.size()});
  barrier(line);
  timeline.clear();
  step(mesh, shape, Computing(timeline, clock));
}

}  // namespace overlapping
