// SPDX-License-Identifier: Apache-2.0
// meshwise-run: starts the ranks of a program as processes on this host. Everything but the command line is Launcher.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/bootstrap/launcher.hpp"
#include "meshwise/version.hpp"

namespace {

constexpr const char* help = R"(usage: meshwise-run -n N [OPTION]... [--] PROGRAM [ARGUMENT]...

Starts N processes of PROGRAM on this host, the ranks of one job, and waits for them.

  -n, -np, --ranks N    how many, 1 to 256
  -l, --label           put "[RANK] " in front of every line that a rank writes
  -x, --export NAME=VALUE
                        set an environment variable of the ranks; NAME alone: it must be set already. All others are
                        those of meshwise-run.
      --bind none|core  none (default): ranks run where the system puts them, threads and other jobs included.
                        core: every rank gets its share of the processors, of whole cores while there are enough; its
                        threads share it. Two jobs that bind get the same processors: use it for one job at a time.
      --grace SECONDS   when a rank has failed, time for the others to notice and end by themselves (default 2); then
                        they get SIGTERM, and 2 seconds later SIGKILL. Not as long as a rank runs that has called
                        shrink within that time: programs that go on without a rank, and compute for longer between
                        two calls, need more
      --keep-going      let the others go on when a rank fails
      --timeout SECONDS longest time for the whole job; then as above, without grace (default 0: none)
      --help            this text
      --version         the version

Each rank finds in its environment MESHWISE_RANK, MESHWISE_SIZE, MESHWISE_LOCAL_RANK, MESHWISE_LOCAL_SIZE, and in
MESHWISE_JOB the descriptors of what the ranks share: nothing between meshwise-run and the program may close them.

Input goes to rank 0, from a terminal through a pipe. Outputs are passed on line by line, those of a single rank as they
come. A program that buffers by blocks when it does not write to a terminal, as C's stdio does, shows its lines when it
flushes them.

Signals (INT, TERM, HUP, QUIT, USR1, USR2, TSTP, CONT) go to all ranks; two INT within a second kill them. When
meshwise-run ends, by whatever, so do all ranks and all that they have started, unless that is in a session of its own.

Exit code: 0 if every rank returned 0, else that of the first rank that failed, 128 + S if signal S killed it;
124 time-out, 125 the job could not be started, 126 PROGRAM cannot be executed, 127 not found, 2 wrong usage.
)";

/// What the command line says.
struct Wanted {
  meshwise::LauncherOptions options;
  std::vector<std::string> command;
  const char* print = nullptr;  ///< a text instead of a job
};

/// Wrong usage: one line.
struct Refusal {
  std::string text;
};

int whole(std::string_view option, std::string_view text, int most) {
  const int value = meshwise::detail::whole_number(text, 1, most);
  if (value < 1) {
    throw Refusal{std::string(option) + " needs a whole number from 1 to " + std::to_string(most) + ", not " +
                  meshwise::detail::quoted(text)};
  }
  return value;
}

double seconds(std::string_view option, std::string_view text) {
  double value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end || !(value >= 0 && value <= 1e9)) {
    throw Refusal{std::string(option) + " needs a number of seconds from 0 to 1e9, not " +
                  meshwise::detail::quoted(text)};
  }
  return value;
}

meshwise::Bind bind(std::string_view text) {
  if (text == "none") return meshwise::Bind::none;
  if (text == "core") return meshwise::Bind::core;
  throw Refusal{"--bind needs none or core, not " + meshwise::detail::quoted(text)};
}

/// "NAME=VALUE" for the launcher; nothing for a name that is in the environment anyway.
void set(meshwise::LauncherOptions& options, std::string_view text) {
  if (text.find('=') != std::string_view::npos) {
    options.environment.emplace_back(text);
  } else if (text.empty() || std::getenv(std::string(text).c_str()) == nullptr) {
    throw Refusal{"-x needs NAME=VALUE or the name of a variable that is set, not " + meshwise::detail::quoted(text)};
  }
}

Wanted read(int count, char** arguments) {
  Wanted wanted;
  bool ranks_given = false;
  int next = 1;
  while (next < count) {
    const std::string_view word = arguments[next];
    if (word == "--") {
      ++next;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    ++next;
    // --name=value and -n8 as well as two words; -np is what fingers remember
    const bool is_long = word[1] == '-' || word == "-np";
    const std::size_t equals = is_long ? word.find('=') : std::string_view::npos;
    const std::string_view option = word.substr(0, is_long ? equals : 2);
    const bool attached = is_long ? equals != std::string_view::npos : word.size() > 2;
    bool used = false;
    const auto value = [&]() -> std::string_view {
      used = true;
      if (attached) return is_long ? word.substr(equals + 1) : word.substr(2);
      if (next == count) throw Refusal{std::string(option) + " needs a value behind it"};
      return arguments[next++];
    };
    if (option == "-n" || option == "--ranks" || option == "-np") {
      wanted.options.ranks = whole(option, value(), meshwise::detail::Control::most_ranks);
      ranks_given = true;
    } else if (option == "-l" || option == "--label") {
      wanted.options.label = true;
    } else if (option == "-x" || option == "--export") {
      set(wanted.options, value());
    } else if (option == "--bind") {
      wanted.options.bind = bind(value());
    } else if (option == "--grace") {
      wanted.options.grace = seconds(option, value());
    } else if (option == "--timeout") {
      wanted.options.timeout = seconds(option, value());
    } else if (option == "--keep-going") {
      wanted.options.keep_going = true;
    } else if (option == "--help" || option == "-h") {
      wanted.print = help;
      return wanted;
    } else if (option == "--version") {
      wanted.print = "";
      return wanted;
    } else {
      throw Refusal{"unknown option " + meshwise::detail::quoted(word)};
    }
    if (attached && !used) throw Refusal{std::string(option) + " takes no value: " + meshwise::detail::quoted(word)};
  }
  wanted.command.assign(arguments + next, arguments + count);
  if (!ranks_given) throw Refusal{"-n N is missing, the number of ranks"};
  if (wanted.command.empty() || wanted.command[0].empty()) throw Refusal{"the program to start is missing"};
  return wanted;
}

}  // namespace

int main(int count, char** arguments) {
  Wanted wanted;
  try {
    wanted = read(count, arguments);
    if (wanted.print == nullptr) {
      meshwise::Launcher launcher(std::move(wanted.options));
      try {
        return launcher.run(wanted.command);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "meshwise-run: %s\n", error.what());
        return 125;
      }
    }
  } catch (const Refusal& refusal) {
    std::fprintf(stderr, "meshwise-run: %s; see meshwise-run --help\n", refusal.text.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meshwise-run: %s\n", error.what());
    return 2;
  }
  if (wanted.print[0] != '\0') {
    std::fputs(wanted.print, stdout);
  } else {
    std::printf("meshwise-run %d.%d.%d\n", meshwise::version_major, meshwise::version_minor, meshwise::version_patch);
  }
  return std::fflush(stdout) == 0 ? 0 : 125;
}
