// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/fabric/delaying/delays.hpp"
#include "meshwise/fabric/delaying/endpoint.hpp"

namespace meshwise {

namespace detail {

inline Communicator delayed_by(Communicator&& communicator, const Delays& delays, VirtualClock* clock) {
  const int rank = communicator.endpoint("delayed").rank();
  require_delays("delayed", delays, rank);
  auto shared = std::make_shared<DelayedRank>(delays, rank, clock);
  return Communicator(std::make_unique<DelayingEndpoint>(communicator.release("delayed"), std::move(shared)));
}

}  // namespace detail

/// The same ranks over a slow network: every operation completes late, and so do those of all groups that are split
/// off.
///
/// For tests of overlap and of races. What a transfer waits for is time alone, not a core: a rank that computes while
/// it is under way finds it done, and a rank that waits sleeps, so that the others have the core. Results, errors and
/// traffic are those of the communicator that is passed in, whatever the delays.
/// communicator: of any fabric whose ranks share a monotonic clock, which one machine's do; it becomes empty. delays:
/// see Delays; ranks may have different ones. Where ranks come at different times, an operation that lands late is
/// complete when it is due on the last of them; one that lands at once, on each rank when it is due there.
/// A small message that lands at once has been copied and may be written again when `send` returns, as before; one that
/// lands late when it is due.
/// Cost: besides the delay, a few polls of at most 0.1 ms while a rank waits, and 8 bytes more per message.
/// Ordering and deadlines: as before; what may be waited for is waited for after the delay, which counts against no
/// deadline. What is refused without being sent, such as an algorithm that does not fit, is refused when it would land.
/// Errors: `invalid_argument` for a delay that is negative or no number, and for an empty communicator.
inline Communicator delayed(Communicator&& communicator, const Delays& delays) {
  return detail::delayed_by(std::move(communicator), delays, nullptr);
}

/// The same in the time of a clock of this rank, in which a wait takes no time of the machine's.
///
/// An operation is due by the own clock alone: for programs whose ranks do alike, so that their clocks agree. `test` of
/// what is due waits for the other ranks, and nothing else depends on how fast they are: all times are the same in
/// every run. Start in the same order on all ranks. clock: outlives the result and its groups.
inline Communicator delayed(Communicator&& communicator, const Delays& delays, VirtualClock& clock) {
  return detail::delayed_by(std::move(communicator), delays, &clock);
}

}  // namespace meshwise
