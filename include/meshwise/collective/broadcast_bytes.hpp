// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>

#include "meshwise/collective/broadcast.hpp"

namespace meshwise {

/// What may be said about a broadcast of unknown length.
struct BytesOptions {
  std::size_t limit = std::size_t{1} << 30;  ///< most bytes that are accepted; the same on all ranks
  double deadline = -1;  ///< seconds that this call may wait, 0 for ever; negative: the communicator's deadline
};

namespace detail {

/// A container whose elements are plain bytes to us: std::string, std::vector<std::byte>, std::vector<int> ...
template <class C>
concept Resizable = Writable<C> && requires(C& c) {
  c.resize(std::size_t{});
};

/// The first message: the length, and all of the data if it is short.
struct BytesHead {
  static constexpr std::size_t most = 48;
  std::uint64_t bytes;
  std::byte data[most];
};

/// unit: bytes of the elements that they are part of.
template <class Byte>
void run_bytes(const char* verb, Communicator& communicator, Byte* data, std::size_t bytes, std::size_t unit, int root,
               const BytesOptions& options) {
  CollectiveOptions plain;
  plain.deadline = options.deadline;
  Request request(communicator.endpoint(verb), communicator.workspace(), verb);
  BroadcastRule<>::within(request, std::span<Byte>(data, bytes), root, plain);
  request.agree(name_signature("broadcast_bytes"));
  request.agree(options.limit);
  request.agree(unit);
  request.run();
}

/// Says so to ranks that would wait for this one.
[[noreturn]] inline void give_up(const char* verb, Communicator& communicator, std::size_t bytes) {
  Report report;
  report.code = Code::out_of_memory;
  report.operation = verb;
  report.rank = communicator.rank();
  report.found = "no memory for " + std::to_string(bytes) + " bytes";
  report.remedy = "send less at a time";
  const Error error(std::move(report));
  communicator.abort(error.what());
  throw error;
}

/// make(bytes): memory for them, on ranks that receive. data, bytes: what the root has.
template <class Make>
void broadcast_any(const char* verb, Communicator& communicator, const void* data, std::size_t bytes, std::size_t unit,
                   int root, const BytesOptions& options, const Make& make) {
  const int rank = communicator.endpoint(verb).rank();
  require_root(verb, root, communicator.size(), rank);
  BytesHead head{};
  if (rank == root) {
    head.bytes = bytes;
    if (bytes > 0 && bytes <= BytesHead::most) std::memcpy(head.data, data, bytes);
  }
  run_bytes(verb, communicator, reinterpret_cast<std::byte*>(&head), sizeof head, unit, root, options);
  if (head.bytes > options.limit) {
    fail(verb, "at most " + std::to_string(options.limit) + " bytes", std::to_string(head.bytes) + " from the root",
         "raise options.limit on all ranks, or send less at a time", rank);
  }
  std::byte* memory = static_cast<std::byte*>(const_cast<void*>(data));
  const auto length = static_cast<std::size_t>(head.bytes);
  if (rank != root) {
    try {
      memory = make(length);
    } catch (const std::exception&) {
      give_up(verb, communicator, length);
    }
  }
  if (length > BytesHead::most) {
    run_bytes(verb, communicator, memory, length, unit, root, options);
  } else if (rank != root && length > 0) {
    std::memcpy(memory, head.data, length);
  }
}

}  // namespace detail

/// Copies the root's bytes to all ranks, which need not know how many there are.
///
/// data: a container of trivially copyable elements that can be resized, such as std::string or std::vector<std::byte>;
/// on ranks other than the root it takes the root's size. root: a rank of the group. options.limit guards the others
/// against a length that they would rather not allocate; it must be the same on all ranks.
/// Cost: one broadcast of 56 bytes, and one of the data if it is longer than 48.
/// Ordering and lifetime: as broadcast.
/// Errors: `invalid_argument` on all ranks alike if the data is longer than the limit (the communicator stays usable);
/// `mismatch` if limits or element sizes differ; `out_of_memory` if a rank cannot hold the data, which aborts the
/// group; otherwise as broadcast.
template <detail::Resizable Data>
void broadcast_bytes(Communicator& communicator, Data& data, int root = 0, const BytesOptions& options = {}) {
  using T = detail::item_t<Data>;
  const auto all = detail::writing(data);
  const auto make = [&](std::size_t bytes) {
    data.resize(bytes / sizeof(T));
    return reinterpret_cast<std::byte*>(detail::writing(data).data());
  };
  detail::broadcast_any("broadcast_bytes", communicator, all.data(), all.size_bytes(), sizeof(T), root, options, make);
}

}  // namespace meshwise
