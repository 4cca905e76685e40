// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/core/detail/list.hpp"

namespace meshwise::detail {

/// The input of rank 0 where the launcher's is a terminal. Only processes of the foreground group may read from that,
/// and a rank leads a group of its own: so the launcher reads, while it is in the foreground, and passes the bytes on.
///
/// Other inputs need none of this: rank 0 inherits them.
class TerminalInput {
 public:
  /// The end that rank 0 reads from; none where the input is no terminal.
  Descriptor connect(const char* operation) {
    if (isatty(0) == 0) return {};
    Pipe pipe = Pipe::make(operation);
    fcntl(pipe.writes.get(), F_SETFL, O_NONBLOCK);
    writes_ = std::move(pipe.writes);
    return std::move(pipe.reads);
  }

  /// Nobody wants more.
  void close() { writes_ = Descriptor(); }

  /// What is to be waited for, and how long at most: that the foreground changes is no event.
  void watch(List<pollfd>& polled, int& milliseconds) const {
    if (!writes_) return;
    if (begin_ < end_) {
      polled.push_back({writes_.get(), POLLOUT, 0});
    } else if (foreground()) {
      polled.push_back({0, POLLIN, 0});
    } else if (milliseconds < 0 || milliseconds > 1000) {
      milliseconds = 1000;
    }
  }

  /// Passes on what is there and is taken at once. The end of the input is passed on too.
  void pass() {
    if (!writes_) return;
    pollfd ready{0, POLLIN, 0};
    if (begin_ == end_ && foreground() && poll(&ready, 1, 0) > 0) {
      const ssize_t bytes = read(0, room_, sizeof(room_));
      if (bytes > 0) {
        begin_ = 0;
        end_ = static_cast<std::size_t>(bytes);
      } else if (bytes == 0 || (errno != EINTR && errno != EAGAIN && foreground())) {
        close();
      }
    }
    while (writes_ && begin_ < end_) {
      const ssize_t bytes = write(writes_.get(), room_ + begin_, end_ - begin_);
      if (bytes > 0) {
        begin_ += static_cast<std::size_t>(bytes);
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        close();
      }
    }
  }

 private:
  static bool foreground() { return tcgetpgrp(0) == getpgrp(); }

  Descriptor writes_;
  char room_[4096];
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace meshwise::detail
