// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "meshwise/trace/traffic.hpp"

namespace meshwise {

struct Call;

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

  /// Returns when the data may be changed. Errors: as `Endpoint::receive`.
  virtual void wait() = 0;
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
///   * `post_send` and `receive` match by (sender, tag), in order.
///   * `split` is collective and gives each rank its end of a new group, null for a negative colour.
///   * `abort` may come from any thread, ends every wait of every rank in the group, and never throws.
/// Every wait ends at its deadline, when the group is aborted, or when the awaited rank has ended. The first error
/// poisons the group: every rank gets an Error at once or at its next call. When a call throws, no rank touches the
/// caller's buffers any more. Ranks compare their calls; a difference is an Error that names both.
///
/// Ordering and lifetime: one thread at a time uses an endpoint, but for `abort`. Destroying it tells the others that
/// this rank has left the group.
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
  void set_axis(std::string axis) { axis_ = std::move(axis); }

  /// Seconds that an operation may wait, 0 for ever.
  double deadline() const { return deadline_; }
  void set_deadline(double seconds) { deadline_ = seconds; }
  double deadline(double chosen) const { return chosen >= 0 ? chosen : deadline_; }

  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }

  virtual Capabilities capabilities() const = 0;
  virtual void run(const Call& call) = 0;
  virtual std::unique_ptr<Sending> post_send(const char* verb, int to, std::uint64_t tag, const void* data,
                                             std::size_t bytes, double deadline) = 0;
  virtual void receive(const char* verb, int from, std::uint64_t tag, void* data, std::size_t bytes,
                       double deadline) = 0;
  virtual std::unique_ptr<Endpoint> split(int color, int key) = 0;
  virtual void abort(const char* reason) noexcept = 0;

 private:
  int rank_;
  int size_;
  double deadline_ = 600;
  std::string axis_;
  Traffic traffic_;
};

}  // namespace meshwise
