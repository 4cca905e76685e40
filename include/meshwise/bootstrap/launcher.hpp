// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshwise/bootstrap/detail/command.hpp"
#include "meshwise/bootstrap/detail/running_job.hpp"
#include "meshwise/bootstrap/detail/system.hpp"
#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/bootstrap/environment.hpp"
#include "meshwise/bootstrap/launcher_options.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

namespace meshwise {

/// Starts the ranks of a job as processes on this host and stays until all have ended: what `meshwise-run` is made of.
///
/// Outputs: what ranks write is passed on line by line, stdout to stdout and stderr to stderr; no line is inside
/// another. The last line of a rank may be without end. A line of more than 256 KiB is passed on in pieces, and broken
/// where another rank writes meanwhile. A reader that is slow slows the ranks down; one that has gone has gone for
/// them too. What a single rank writes is passed on as it comes.
/// Input: to rank 0, from a terminal through a pipe; the others read nothing.
/// Signals: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT go to all ranks and what they have
/// started, two SIGINT within a second become SIGKILL. Signals that are ignored when the launcher starts stay ignored.
/// Ends: when a rank fails, its output and then how it ended are written; the others have `grace` to find out by
/// themselves, then they get SIGTERM, and `kill_after` later SIGKILL; but not as long as a rank runs that has called
/// shrink since: the job goes on, and returns the code of the failure when it ends. Every rank leads a process group,
/// and what is left of the groups when all ranks have ended is killed. The same happens when the launcher itself is
/// killed. What is to outlive the job needs a session of its own (setsid).
/// Cost: four descriptors per rank here, ranks + 1 in each rank; one more process, which guards the groups.
/// Lifetime: for a process with one thread. While a job runs, signals are blocked and SIGPIPE is ignored; afterwards
/// all is as before, but for a higher limit of open files.
class Launcher {
 public:
  /// Errors: `invalid_argument` for options that cannot work.
  explicit Launcher(LauncherOptions options) : options_(std::move(options)) {
    if (options_.ranks < 1 || options_.ranks > detail::Control::most_ranks) {
      fail("Launcher", "1 to " + std::to_string(detail::Control::most_ranks) + " ranks", std::to_string(options_.ranks),
           "choose another number of ranks");
    }
    check(options_.grace, "a time of grace");
    check(options_.kill_after, "a time until SIGKILL");
    check(options_.timeout, "a time-out");
    detail::Command::check("Launcher", options_.environment);
  }

  /// Runs a program, its arguments behind its name, as it is found by PATH. Each rank finds its Place in its
  /// environment. Returns the exit code of the job: 0 if all ranks returned 0; else that of the first one that failed,
  /// 128 and the signal if it was killed; 124 after the time-out; 126 or 127 if the program cannot be executed or
  /// found, which is written to stderr.
  /// Errors: `out_of_memory` if processes or what they share cannot be made; no rank is left then.
  int run(const std::vector<std::string>& command) {
    if (command.empty()) fail("Launcher", "a program", "none", "name the program to start");
    const detail::FoundProgram program = detail::FoundProgram::find(command[0]);
    if (program.error != 0) {
      const bool missing = program.error == ENOENT || program.error == ENOTDIR;
      const std::string why = missing && command[0].find('/') == std::string::npos
                                  ? "not found in PATH"
                                  : detail::system_error(program.error);
      std::fflush(stdout);
      std::fprintf(stderr, "%s: cannot execute %s: %s\n", options_.name.c_str(), detail::quoted(command[0]).c_str(),
                   why.c_str());
      return missing ? 127 : 126;
    }
    Execution execution{detail::Command(program.path, command, options_.environment)};
    return start(command[0], {execute, &execution});
  }

  /// Runs `function(rank, segments)` in forked copies of this process; what it returns is the exit code of the rank.
  /// The environment says nothing of the job. Otherwise as above.
  template <class Function>
    requires requires(Function& function, detail::Segments& segments) { static_cast<int>(function(0, segments)); }
  int run(Function&& function) {
    return start("the function", {[](void* object, int rank, detail::Segments& segments, int&) {
                                    using Type = std::remove_reference_t<Function>;
                                    const int code = static_cast<int>((*static_cast<Type*>(object))(rank, segments));
                                    std::fflush(nullptr);
                                    return code;
                                  },
                                  const_cast<void*>(static_cast<const void*>(&function))});
  }

 private:
  struct Execution {
    detail::Command command;
  };

  static void check(double seconds, const char* what) {
    if (!(seconds >= 0)) {
      fail("Launcher", std::string(what) + " of 0 seconds or more", std::to_string(seconds), "choose another time");
    }
  }

  static int execute(void* object, int rank, detail::Segments& segments, int& trouble) {
    Place place;
    place.rank = place.local_rank = rank;
    place.size = place.local_size = segments.ranks();
    place.control = passed_on(segments.control());
    for (int other = 0; other < place.size; ++other) place.arenas.push_back(passed_on(segments.arena(other)));
    trouble = static_cast<Execution*>(object)->command.become(place);
    return 127;
  }

  /// A copy that the program inherits; beyond the numbers that scripts like to choose themselves.
  static int passed_on(int descriptor) {
    const int copy = fcntl(descriptor, F_DUPFD, 64);
    if (copy >= 0) return copy;
    fcntl(descriptor, F_SETFD, 0);  // few numbers are permitted
    return descriptor;
  }

  int start(const std::string& what, detail::RankTask task) {
    std::fflush(nullptr);
    occupy_standard();
    detail::RunningJob job(options_, what, task);
    return job.run();
  }

  /// Where this process was started without input or outputs, nothing else may get their numbers. They stay as useless
  /// as they were: what may be read cannot be written.
  static void occupy_standard() {
    for (int one = 0; one <= 2; ++one) {
      if (fcntl(one, F_GETFD) < 0) (void)open("/dev/null", one == 0 ? O_WRONLY : O_RDONLY);
    }
  }

  LauncherOptions options_;
};

}  // namespace meshwise
