// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "meshwise/collective/broadcast_bytes.hpp"
#include "meshwise/core/detail/list.hpp"

namespace meshwise {

/// Copies an object of any type from the root to all ranks, by way of bytes.
///
/// object: on ranks other than the root it is assigned to. pack(object): called at the root; gives a container of
/// trivially copyable elements, such as std::string. unpack(std::span<const std::byte>): called on the other ranks;
/// gives a value that the object is assigned from. The span is aligned for every type and lives for that call only.
/// Cost: as broadcast_bytes, one allocation on receiving ranks, and what pack and unpack do.
/// Errors: as broadcast_bytes. What pack and unpack throw passes through: from pack before anything is sent, so that
/// the other ranks wait until this one leaves or aborts; from unpack when all is done.
template <class Object, class Pack, class Unpack>
void broadcast_object(Communicator& communicator, Object& object, const Pack& pack, const Unpack& unpack, int root = 0,
                      const BytesOptions& options = {}) {
  const bool sends = communicator.endpoint("broadcast_object").rank() == root;
  detail::List<std::byte> received;
  const auto make = [&](std::size_t bytes) {
    received.resize(bytes);
    return received.data();
  };
  if (sends) {
    const auto packed = pack(object);
    const auto bytes = std::as_bytes(detail::reading(packed));
    detail::broadcast_any("broadcast_object", communicator, bytes.data(), bytes.size(), 1, root, options, make);
  } else {
    detail::broadcast_any("broadcast_object", communicator, nullptr, 0, 1, root, options, make);
    object = unpack(std::span<const std::byte>(received.data(), received.size()));
  }
}

}  // namespace meshwise
