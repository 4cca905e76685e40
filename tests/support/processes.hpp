// SPDX-License-Identifier: Apache-2.0
// Forked processes for tests: each talks with the test through a socket, and none outlives it.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace test {

/// One end of a conversation in words of at most 2000 bytes.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {}

  void say(const std::string& word) const {
    if (send(descriptor_, word.data(), word.size(), MSG_NOSIGNAL) < 0) {}
  }
  /// The next word; "(silence)" after 20 s, "(gone)" when the other side has ended.
  std::string hear() const {
    pollfd one{descriptor_, POLLIN, 0};
    int ready = 0;
    do {
      ready = poll(&one, 1, 20'000);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return "(silence)";
    char word[2048];
    ssize_t got = 0;
    do {
      got = recv(descriptor_, word, sizeof(word), 0);
    } while (got < 0 &&
             (errno == EINTR || errno == ECONNRESET));  // the other side left words unread; its own are there
    return got > 0 ? std::string(word, static_cast<std::size_t>(got)) : "(gone)";
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Children that run body(k, line) each, and say what it returns or throws at the end. The destructor kills what is
/// left.
class Children {
 public:
  template <class Body>
  Children(int count, const Body& body) {
    for (int k = 0; k < count; ++k) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::bad_exception();
      std::fflush(nullptr);  // else a child whose end flushes says it once more
      const pid_t pid = fork();
      if (pid == 0) {
        close(ends[0]);
        for (const Child& other : children_) close(other.line.descriptor());
        const Line line(ends[1]);
        try {
          line.say(body(k, line));
        } catch (const std::exception& error) {
          line.say(std::string("error: ") + error.what());
        }
        _exit(0);
      }
      close(ends[1]);
      children_.push_back({pid, Line(ends[0])});
    }
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (std::size_t k = 0; k < children_.size(); ++k) {
      if (children_[k].pid > 0) kill(children_[k].pid, SIGKILL);
      reap(static_cast<int>(k));
      close(children_[k].line.descriptor());
    }
  }

  int count() const { return static_cast<int>(children_.size()); }
  pid_t pid(int k) const { return children_[static_cast<std::size_t>(k)].pid; }
  std::string hear(int k) const { return children_[static_cast<std::size_t>(k)].line.hear(); }
  void say(int k, const std::string& word) const { children_[static_cast<std::size_t>(k)].line.say(word); }
  /// Waits for one to end; its status as of waitpid.
  int reap(int k) {
    Child& child = children_[static_cast<std::size_t>(k)];
    if (child.pid <= 0) return child.status;
    while (waitpid(child.pid, &child.status, 0) < 0 && errno == EINTR) {}
    child.pid = 0;
    return child.status;
  }
  int send_signal(int k, int number) const { return kill(pid(k), number); }

 private:
  struct Child {
    pid_t pid;
    Line line;
    int status = 0;
  };
  std::vector<Child> children_;
};

}  // namespace test
