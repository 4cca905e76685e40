// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace meshwise::detail {

/// Reads private memory of another process of this host (cross-memory attach); false if the system refuses, or if it is
/// not there.
///
/// Needs what attaching a debugger needs. Cost: a system call per 1 GiB at most, and one copy.
inline bool attach_and_read(pid_t pid, void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 30;  // the system stops somewhere below 2 GiB
  auto* at = static_cast<std::byte*>(to);
  auto* source = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::size_t now = bytes < most ? bytes : most;
    const iovec local{at, now};
    const iovec remote{const_cast<std::byte*>(source), now};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    source += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace meshwise::detail
