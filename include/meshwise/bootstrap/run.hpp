// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/launch_options.hpp"
#include "meshwise/fabric/memory/cores.hpp"

namespace meshwise {

/// How `run` starts a program.
struct RunOptions : LaunchOptions {
  int ranks = 0;  ///< 0: as many as the surroundings say
};

/// The fabrics that a program may run on, the first choice first. Each is a tag with static members:
///
///     const char* name();          "shared_memory"; what MESHWISE_FABRIC calls it
///     bool fits();                 whether the surroundings are made for it
///     void run(int ranks, const LaunchOptions&, program);
///                                  calls program(Communicator&) as the ranks that this process has; what it throws is
///                                  thrown
///     int size();   int rank();    optional: what the surroundings say of this process; 0, -1: nothing
template <class... Fabrics>
struct fabrics {
  static_assert(sizeof...(Fabrics) > 0, "fabrics<> is empty: name at least one, such as fabrics<thread>");
};

namespace detail {

/// A variable, null where it is not set or empty.
inline const char* variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? nullptr : text;
}

/// The number of ranks where a fabric leaves it open: as asked for, MESHWISE_RANKS, or one for every usable core.
inline int open_ranks(int asked) {
  constexpr int most = 4096;
  if (asked != 0) return asked;
  const char* const text = variable("MESHWISE_RANKS");
  if (text == nullptr) return usable_cores();
  const int value = whole_number(text, 1, most);
  if (value < 1) {
    fail("MESHWISE_RANKS", "a number of ranks from 1 to " + std::to_string(most), quoted(text),
         "set it to a number, or not at all");
  }
  return value;
}

/// What run does with one of the fabrics of a list.
struct RunChoice {
  std::string_view name;
  bool fits = false;
};

/// Which one of a list runs: the one that MESHWISE_FABRIC names, else the first that fits.
inline std::size_t choose_fabric(const RunChoice* choices, std::size_t count) {
  std::string names;
  for (std::size_t k = 0; k < count; ++k) names += (k == 0 ? "" : ", ") + std::string(choices[k].name);
  const char* const forced = variable("MESHWISE_FABRIC");
  for (std::size_t k = 0; k < count; ++k) {
    if (forced == nullptr ? !choices[k].fits : choices[k].name != forced) continue;
    if (choices[k].fits) return k;
    fail("MESHWISE_FABRIC", "a fabric that fits the surroundings",
         quoted(forced) + ", which needs a launcher that has started this process for it",
         "start the program by meshwise-run, or remove the variable");
  }
  if (forced != nullptr) {
    fail("MESHWISE_FABRIC", "one of " + names, quoted(forced), "name one that the program has, or remove the variable");
  }
  fail("run", "one of the fabrics " + names + " to fit the surroundings", "none",
       "start the program by meshwise-run, or add thread to its list of fabrics");
}

/// One line on stderr for what a rank has thrown.
inline void print_failure(int rank, const char* what) {
  std::string text = rank < 0 ? "" : "rank " + std::to_string(rank) + ": ";
  text += what;
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  text += '\n';
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
}

template <class Fabric>
int rank_here() {
  if constexpr (requires { Fabric::rank(); }) {
    return Fabric::rank();
  } else {
    return -1;
  }
}

template <class Fabric, class Program>
void run_on_fabric(const RunOptions& options, Program& program, int& rank) {
  rank = rank_here<Fabric>();
  int size = 0;
  if constexpr (requires { Fabric::size(); }) size = Fabric::size();
  if (size > 0 && options.ranks != 0 && options.ranks != size) {
    fail("run", std::to_string(options.ranks) + " ranks, as RunOptions::ranks says",
         std::to_string(size) + " that the launcher has started", "give the launcher that number, or leave it to it",
         rank);
  }
  Fabric::run(size > 0 ? size : open_ranks(options.ranks), static_cast<const LaunchOptions&>(options), program);
}

template <class List>
struct RunOf;

template <class... Fabrics>
struct RunOf<fabrics<Fabrics...>> {
  template <class Program>
  static int run(const RunOptions& options, Program& program) {
    int rank = -1;
    try {
      const RunChoice choices[] = {{Fabrics::name(), Fabrics::fits()}...};
      const std::size_t chosen = choose_fabric(choices, sizeof...(Fabrics));
      std::size_t k = 0;
      ((k++ == chosen ? run_on_fabric<Fabrics>(options, program, rank) : void()), ...);
      return 0;
    } catch (const std::exception& error) {
      print_failure(rank, error.what());
    } catch (...) {
      print_failure(rank, "an exception that is no std::exception");
    }
    return 1;
  }
};

}  // namespace detail

/// Runs `program(Communicator&)` on the first of a list of fabrics that fits the surroundings, for a main function:
///
///     int main() { return meshwise::run<meshwise::fabrics<meshwise::shared_memory, meshwise::thread>>(program); }
///
/// is ranks as processes under meshwise-run, and ranks as threads when started by itself.
///
/// options.ranks: a wish. Where the fabric leaves the number open it is that, or MESHWISE_RANKS, or one for each core
/// that this process may use; what a launcher has started is what it is. MESHWISE_FABRIC names another fabric of the
/// list.
/// Returns the exit code: 0, or 1 after writing what was thrown on this rank to stderr, as one line.
/// Errors: none are thrown. Written are, besides those of the program: a number of ranks other than that of the
/// launcher, no fabric that fits, one that is forced and unknown or does not fit, variables that are no numbers.
template <class Fabrics, class Program>
int run(const RunOptions& options, Program&& program) {
  return detail::RunOf<Fabrics>::run(options, program);
}

/// The same with default options.
template <class Fabrics, class Program>
int run(Program&& program) {
  return detail::RunOf<Fabrics>::run(RunOptions{}, program);
}

}  // namespace meshwise
