// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>

namespace meshwise::detail {

/// A request to the system to copy between own memory and private memory of another process.
using AttachRequest = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

inline bool attach_and(AttachRequest copy, pid_t pid, std::byte* here, std::byte* there, std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 30;  // the system stops somewhere below 2 GiB
  while (bytes > 0) {
    const std::size_t now = bytes < most ? bytes : most;
    const iovec local{here, now};
    const iovec remote{there, now};
    const ssize_t done = copy(pid, &local, 1, &remote, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    here += done;
    there += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

/// Reads private memory of another process of this host (cross-memory attach); false if the system refuses, or if it is
/// not there.
///
/// Needs what attaching a debugger needs. Cost: a system call per 1 GiB at most, and one copy.
inline bool attach_and_read(pid_t pid, void* to, const void* from, std::size_t bytes) {
  return attach_and(process_vm_readv, pid, static_cast<std::byte*>(to),
                    static_cast<std::byte*>(const_cast<void*>(from)), bytes);
}

/// Writes private memory of another process of this host, likewise.
inline bool attach_and_write(pid_t pid, void* to, const void* from, std::size_t bytes) {
  return attach_and(process_vm_writev, pid, static_cast<std::byte*>(const_cast<void*>(from)),
                    static_cast<std::byte*>(to), bytes);
}

}  // namespace meshwise::detail
