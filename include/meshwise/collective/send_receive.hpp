// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/detail/arguments.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/hold.hpp"

namespace meshwise {

/// Which message, and how long to wait for it.
struct MessageOptions {
  int tag = 0;           ///< from 0; messages of one sender with one tag arrive in order
  double deadline = -1;  ///< seconds that this call may wait for a message, 0 for ever; negative: the communicator's
};

namespace detail {

inline void require_peer(const char* verb, int peer, int tag, int size, int rank) {
  if (peer < 0 || peer >= size) {
    fail(verb, "a peer from 0 to " + std::to_string(size - 1), std::to_string(peer), "pass a rank of this communicator",
         rank);
  }
  if (tag < 0) fail(verb, "a tag >= 0", std::to_string(tag), "choose another tag", rank);
}

inline Endpoint& message_end(const char* verb, Communicator& communicator, int peer, const MessageOptions& options) {
  Endpoint& endpoint = communicator.endpoint(verb);
  require_peer(verb, peer, options.tag, endpoint.size(), endpoint.rank());
  return endpoint;
}

/// Lets the groups in flight that were started before `own` (null: all of them) receive what they expect of a sender
/// with a tag. False: not blocking, and something has not arrived.
inline bool receive_earlier(Endpoint& endpoint, const Expectation* own, int from, std::uint64_t tag, bool blocking,
                            double deadline) {
  for (Expectation* const earlier : endpoint.expectations()) {
    if (earlier == own) break;
    while (earlier->expects(from, tag)) {
      if (!earlier->receive_next(from, tag, blocking, deadline)) return false;
    }
  }
  return true;
}

/// Endpoint::receive, after what was begun before.
inline void receive_in_turn(Endpoint& endpoint, const char* verb, int from, std::uint64_t tag, void* data,
                            std::size_t bytes, double deadline) {
  if (!endpoint.expectations().empty()) receive_earlier(endpoint, nullptr, from, tag, true, deadline);
  endpoint.receive(verb, from, tag, data, bytes, deadline);
}

inline void received(Endpoint& endpoint, int from, std::size_t bytes) {
  ++endpoint.traffic().calls;
  if (from == endpoint.rank()) return;
  ++endpoint.traffic().messages;
  endpoint.traffic().volume += bytes;
  endpoint.traffic().moved += bytes;
}

}  // namespace detail

/// Sends a vector to one rank, which must call `receive` with the same size and tag.
///
/// data: any number of elements of a trivially copyable type, 0 too. to: a rank of the group, also this one.
/// Cost: up to 8 KiB are copied and the call returns; a larger vector is read by the receiver where it lies, and the
/// call returns when that is done. To oneself it is always copied. The receiver counts the traffic.
/// Ordering: messages of one sender with one tag arrive in the order in which they were sent. On return the span is the
/// caller's again.
/// Errors: `invalid_argument` for a peer or a tag out of range; `mismatch` on both ranks if the receiver wants another
/// size (if the message was copied, the sender gets it at its next call); `timed_out`, `aborted`, `peer_left`.
template <detail::Readable Data>
void send(Communicator& communicator, const Data& data, int to, const MessageOptions& options = {}) {
  const auto all = detail::reading(data);
  Endpoint& endpoint = detail::message_end("send", communicator, to, options);
  detail::require_data("send", "message", all.data(), all.size(), endpoint.rank());
  const detail::Hold hold(endpoint.latch());
  ++endpoint.traffic().calls;
  endpoint
      .post_send("send", to, static_cast<std::uint64_t>(options.tag), all.data(), all.size_bytes(), options.deadline)
      ->wait();
}

/// Receives a vector from one rank; see `send`.
///
/// data: exactly as many bytes as are sent. from: a rank of the group.
/// Ordering: receives get the messages of one sender with one tag in the order in which they were begun; if a Group in
/// flight expects some, this call waits for those first and puts them where the group wants them.
template <detail::Writable Data>
void receive(Communicator& communicator, Data&& data, int from, const MessageOptions& options = {}) {
  const auto all = detail::writing(data);
  Endpoint& endpoint = detail::message_end("receive", communicator, from, options);
  detail::require_data("receive", "message", all.data(), all.size(), endpoint.rank());
  const detail::Hold hold(endpoint.latch());
  detail::receive_in_turn(endpoint, "receive", from, static_cast<std::uint64_t>(options.tag), all.data(),
                          all.size_bytes(), options.deadline);
  detail::received(endpoint, from, all.size_bytes());
}

/// Sends one vector and receives another at the same time, so that rings and pairs cannot dead-lock.
///
/// out, to: what goes to whom. in, from: what comes from whom. Sizes may differ; the spans must be apart.
/// Cost, ordering and errors: as `send` and `receive`; counts as one call.
template <detail::Readable Out, detail::Writable In>
void exchange(Communicator& communicator, const Out& out, int to, In&& in, int from,
              const MessageOptions& options = {}) {
  const auto leaving = detail::reading(out);
  const auto arriving = detail::writing(in);
  detail::message_end("exchange", communicator, to, options);
  Endpoint& endpoint = detail::message_end("exchange", communicator, from, options);
  detail::require_data("exchange", "message", leaving.data(), leaving.size(), endpoint.rank());
  detail::require_data("exchange", "message", arriving.data(), arriving.size(), endpoint.rank());
  detail::require_apart("exchange", std::as_bytes(leaving), std::as_writable_bytes(arriving), "use two buffers",
                        endpoint.rank());
  const auto tag = static_cast<std::uint64_t>(options.tag);
  const detail::Hold hold(endpoint.latch());
  const auto sending = endpoint.post_send("exchange", to, tag, leaving.data(), leaving.size_bytes(), options.deadline);
  detail::receive_in_turn(endpoint, "exchange", from, tag, arriving.data(), arriving.size_bytes(), options.deadline);
  sending->wait();
  detail::received(endpoint, from, arriving.size_bytes());
}

}  // namespace meshwise
