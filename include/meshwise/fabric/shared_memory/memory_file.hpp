// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/descriptor.hpp"

namespace meshwise::detail {

/// Keeps the signal by which the system punishes a file that grows beyond the limit of the process (ulimit -f) from
/// ending the program: the call that asked for the growth returns EFBIG all the same.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    had_one_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    const int saved = errno;
    const std::timespec now{};
    if (!had_one_) {
      while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool had_one_;
};

/// Has the system set memory aside for a range of a file in memory, which grows where it is shorter. Until this has
/// succeeded, whoever touches the range may be ended by SIGBUS; afterwards never.
///
/// The range: nothing in it is in use, for after an error all of it is given back. Returns 0 or the error of the
/// system.
/// Cost: 0.1 ms per MiB (the pages are cleared at the first touch, not here).
inline int reserve_pages(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  // In pieces: the system undoes a call that a signal interrupts, so that a timer could keep a long one from ending.
  constexpr std::uint64_t most = std::uint64_t{2} << 20;
  const NoFileSizeSignal guard;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t piece = bytes - done < most ? bytes - done : most;
    if (fallocate(descriptor, 0, static_cast<off_t>(offset + done), static_cast<off_t>(piece)) == 0) {
      done += piece;
    } else if (errno != EINTR) {
      const int error = errno;
      if (done != 0) {
        fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(done));
      }
      return error;
    }
  }
  return 0;
}

/// Gives the memory of a range back to the system; its bytes become zero. Whole pages only.
inline bool give_back_pages(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  int result = 0;
  do {
    result = fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

/// A file in a folder that has never had a name there, or none: the file system cannot do this (errno says why).
inline Descriptor unnamed_file(const char* folder) {
  return Descriptor(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

/// A file that lives in memory, has no name, and goes with its last descriptor and mapping; none where neither way
/// works (errno says why). Where the system forbids anonymous files, as some sandboxes do, it lies in /dev/shm and
/// counts against that file system's size.
///
/// name: for people who look at /proc/PID/maps.
inline Descriptor memory_file(const char* name) {
#if defined(MFD_NOEXEC_SEAL)
  constexpr unsigned never_executed = MFD_NOEXEC_SEAL;
#else
  constexpr unsigned never_executed = 8;  // of Linux 6.3; some systems insist on it
#endif
  int number = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | never_executed);
  if (number < 0 && errno == EINVAL) number = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (number < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES)) return unnamed_file("/dev/shm");
  return Descriptor(number);
}

/// Forbids that anybody truncates the file, and if `fixed` that it grows; files that cannot be sealed stay as they are.
inline void seal(const Descriptor& file, bool fixed) {
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | (fixed ? F_SEAL_GROW : 0) | F_SEAL_SEAL);
}

/// "No space left on device (28)".
inline std::string system_error(int number) {
  char text[128] = {};
  return std::string(strerror_r(number, text, sizeof(text))) + " (" + std::to_string(number) + ")";
}

}  // namespace meshwise::detail
