// SPDX-License-Identifier: Apache-2.0
// A launcher in a process of its own, as a shell would start it, and what came of it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "meshwise/bootstrap/launcher.hpp"
#include "meshwise/core/deadline.hpp"

namespace launched {

struct Outcome {
  int status = 0;  ///< as of waitpid
  std::string out;
  std::string err;
  bool gone = false;  ///< no process that the launcher has started, or these in turn, is left
  double seconds = 0;

  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }
};

/// A launcher that runs. Its outputs are read when `end` is called, or by line.
class Running {
 public:
  /// start(Launcher&) returns the exit code. input: what rank 0 can read.
  template <class Start>
  Running(const meshwise::LauncherOptions& options, Start start, const std::string& input = "") {
    begun_ = meshwise::monotonic_nanoseconds();
    int in[2], out[2], err[2], alive[2];
    open_pipe(in);
    open_pipe(out);
    open_pipe(err);
    open_pipe(alive);
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      for (const int one : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) signal(one, SIG_DFL);  // not the test's handlers
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      for (const int one : {in[0], in[1], out[0], out[1], err[0], err[1], alive[0]}) close(one);
      int code = 99;
      try {
        meshwise::Launcher launcher(options);
        code = start(launcher);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "threw: %s\n", error.what());
      }
      std::fflush(nullptr);
      _exit(code);
    }
    for (const int one : {in[0], out[1], err[1], alive[1]}) close(one);
    if (write(in[1], input.data(), input.size()) != static_cast<ssize_t>(input.size())) std::perror("input");
    close(in[1]);
    out_ = out[0];
    err_ = err[0];
    alive_ = alive[0];
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { end(); }

  pid_t pid() const { return pid_; }
  void send(int signal) const { kill(pid_, signal); }

  /// Whether the launcher has ended.
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

  /// What stdout has been read to have.
  const std::string& so_far() const { return outcome_.out; }
  /// Reads more of it. False if it ends, or does not come within ten seconds.
  bool more() {
    pollfd ready{out_, POLLIN, 0};
    return poll(&ready, 1, 10'000) > 0 && take(out_, outcome_.out);
  }
  /// Reads until stdout has this text.
  bool await(const std::string& text) {
    while (outcome_.out.find(text) == std::string::npos) {
      if (!more()) return false;
    }
    return true;
  }

  /// Stops reading stdout, as a reader that has gone.
  void close_out() { close_one(out_); }

  const Outcome& end() {
    if (ended_) return outcome_;
    while (out_ >= 0 || err_ >= 0) {
      pollfd ready[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
      if (poll(ready, 2, 60'000) <= 0) kill(pid_, SIGKILL);
      if (ready[0].revents != 0 && !take(out_, outcome_.out)) close_one(out_);
      if (ready[1].revents != 0 && !take(err_, outcome_.err)) close_one(err_);
    }
    while (waitpid(pid_, &outcome_.status, 0) < 0 && errno == EINTR) {}
    pollfd ready{alive_, POLLIN, 0};
    outcome_.gone = poll(&ready, 1, 5'000) == 1;
    close_one(alive_);
    outcome_.seconds = static_cast<double>(meshwise::monotonic_nanoseconds() - begun_) * 1e-9;
    ended_ = true;
    return outcome_;
  }

 private:
  /// Closed by exec but for what the shells of tests inherit on purpose: the end that tells whether they live.
  static void open_pipe(int (&ends)[2]) {
    if (pipe(ends) != 0) std::perror("pipe");
  }

  static bool take(int from, std::string& to) {
    char room[65536];
    const ssize_t bytes = read(from, room, sizeof(room));
    if (bytes > 0) to.append(room, static_cast<std::size_t>(bytes));
    return bytes > 0;
  }

  static void close_one(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  int alive_ = -1;
  bool ended_ = false;
  std::int64_t begun_ = 0;
  Outcome outcome_;
};

/// Runs a shell script as every rank.
inline auto shell(std::string script) {
  return [script = std::move(script)](meshwise::Launcher& launcher) { return launcher.run({"sh", "-c", script}); };
}

/// Runs function(rank, segments) as every rank.
template <class Function>
auto ranks(Function function) {
  return [function](meshwise::Launcher& launcher) {
    return launcher.run(
        [&](int rank, meshwise::detail::Segments& segments) { return static_cast<int>(function(rank, segments)); });
  };
}

inline meshwise::LauncherOptions options(int ranks) {
  meshwise::LauncherOptions made;
  made.ranks = ranks;
  return made;
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The place of a text; the end where it is not.
inline std::size_t at(const std::string& text, const std::string& part) {
  const std::size_t place = text.find(part);
  return place == std::string::npos ? text.size() : place;
}

inline meshwise::LauncherOptions hasty(int ranks) {
  meshwise::LauncherOptions made = options(ranks);
  made.grace = 0.1;
  made.kill_after = 0.1;
  return made;
}

/// For ranks that end by themselves, however slow the machine is.
inline meshwise::LauncherOptions patient(int ranks) {
  meshwise::LauncherOptions made = options(ranks);
  made.grace = 30;
  return made;
}

/// Writes all, as a program that does not know stdio.
inline void put(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t bytes = write(descriptor, text.data() + done, text.size() - done);
    if (bytes < 0) _exit(98);
    done += static_cast<std::size_t>(bytes);
  }
}

[[noreturn]] inline void stay() {
  while (true) pause();
}

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    result.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return result;
}

}  // namespace launched
