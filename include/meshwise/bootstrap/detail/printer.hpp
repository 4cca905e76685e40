// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "meshwise/bootstrap/detail/system.hpp"

namespace meshwise::detail {

/// What the launcher writes to one of its own outputs: lines of many sources, none inside another.
///
/// Nothing here waits for a slow reader: what it does not take stays in a queue, and `full()` asks for no more. (The
/// descriptor is not made non-blocking, which would change it for all who share it; a pipe or terminal that is ready
/// takes a page without blocking.)
class Printer {
 public:
  static constexpr int launcher = -1;  ///< the source of the launcher's own lines

  /// label: put "[rank] " in front of the lines of ranks. Rank r is the sources 2 r and 2 r + 1, its two outputs.
  Printer(int descriptor, bool label) : descriptor_(descriptor), label_(label) {
    struct stat about {};
    regular_ = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  }

  /// Whether two descriptors are one file, pipe or terminal: then one printer must have both.
  static bool same(int one, int other) {
    struct stat a {};
    struct stat b {};
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  }

  /// Whole lines, or a piece of one. The next piece from the same source goes on where this one ends; if another
  /// source comes first, the line is broken there.
  void put(int source, std::string_view text) {
    if (text.empty() || error_ != 0) return;
    if (open_ != nobody && open_ != source) {
      queue_ += '\n';
      open_ = nobody;
    }
    if (!label_ || source == launcher) {
      queue_ += text;
    } else {
      const std::string label = "[" + std::to_string(source / 2) + "] ";
      bool inside = open_ == source;
      std::string_view rest = text;
      while (!rest.empty()) {
        if (!inside) queue_ += label;
        inside = false;
        const std::size_t end = rest.find('\n');
        queue_ += rest.substr(0, end == std::string_view::npos ? end : end + 1);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      }
    }
    open_ = text.back() == '\n' ? nobody : source;
  }

  int descriptor() const { return descriptor_; }
  bool empty() const { return written_ == queue_.size(); }
  bool full() const { return queue_.size() - written_ > most_waiting; }

  /// Why nothing can be written any more, as errno says it; 0 while it can.
  int error() const { return error_; }

  /// Writes as much as is taken at once.
  void write_some() {
    while (!empty() && error_ == 0) {
      if (!regular_) {
        pollfd ready{descriptor_, POLLOUT, 0};
        if (poll(&ready, 1, 0) <= 0) break;
      }
      std::size_t bytes = queue_.size() - written_;
      if (!regular_ && bytes > page) bytes = page;
      const ssize_t done = write(descriptor_, queue_.data() + written_, bytes);
      if (done >= 0) {
        written_ += static_cast<std::size_t>(done);
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    if (error_ != 0) written_ = queue_.size();
    if (written_ > most_waiting || empty()) {
      queue_.erase(0, written_);
      written_ = 0;
    }
  }

 private:
  static constexpr int nobody = -2;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t most_waiting = 1 << 20;

  int descriptor_;
  bool label_;
  bool regular_ = false;
  std::string queue_;
  std::size_t written_ = 0;
  int open_ = nobody;  ///< whose line is not at its end
  int error_ = 0;
};

/// One output of a rank, on its way to a Printer, line by line.
class RankOutput {
 public:
  RankOutput() = default;
  /// reads: not blocking.
  RankOutput(int source, Descriptor reads, Printer& to) : source_(source), reads_(std::move(reads)), to_(&to) {}

  int rank() const { return source_ / 2; }
  /// -1 once it has ended.
  int descriptor() const { return reads_.get(); }
  bool open() const { return static_cast<bool>(reads_); }
  Printer& to() const { return *to_; }

  /// Takes what is there, up to the room; whether anything was.
  bool take(char* room, std::size_t bytes) {
    while (reads_) {
      const ssize_t done = read(reads_.get(), room, bytes);
      if (done > 0) {
        held_.append(room, static_cast<std::size_t>(done));
        return true;
      }
      if (done < 0 && errno == EINTR) continue;
      if (done == 0 || errno != EAGAIN) reads_ = Descriptor();
      break;
    }
    return false;
  }

  /// Passes whole lines on, and of a line without end what is too much to keep.
  void pass_lines() {
    const std::size_t end = held_.rfind('\n');
    std::size_t ready = end == std::string::npos ? 0 : end + 1;
    if (held_.size() - ready > longest_line || !open()) ready = held_.size();
    pass(ready);
  }

  void pass_all() { pass(held_.size()); }

  /// Wants no more: whoever writes finds out as if the reader had gone.
  void close() {
    reads_ = Descriptor();
    held_.clear();
  }

 private:
  static constexpr std::size_t longest_line = 1 << 18;

  void pass(std::size_t bytes) {
    to_->put(source_, std::string_view(held_).substr(0, bytes));
    held_.erase(0, bytes);
  }

  int source_ = 0;
  Descriptor reads_;
  Printer* to_ = nullptr;
  std::string held_;
};

}  // namespace meshwise::detail
