// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include "meshwise/bootstrap/run.hpp"
#include "meshwise/bootstrap/shared_memory.hpp"
#include "meshwise/bootstrap/thread.hpp"

namespace examples {

/// Under meshwise-run, and where MESHWISE_FABRIC=shared_memory, ranks are processes; else they are threads.
using Fabrics = meshwise::fabrics<meshwise::shared_memory, meshwise::thread>;

/// The command line that all small examples have: `program [RANKS]`, 4 ranks unless told otherwise.
///
/// Runs program(Communicator&) on every rank, which throws when something is not as it should be, and returns the exit
/// code: 0 when all was well, 1 when a rank threw, 2 for arguments that cannot work. purpose: one sentence for --help.
template <class Program>
int main(int count, char** arguments, const char* purpose, const Program& program) {
  constexpr int most = 64;
  const char* slash = std::strrchr(arguments[0], '/');
  const char* name = slash != nullptr ? slash + 1 : arguments[0];
  // What a launcher has started: then this is one of the processes, and the first of them speaks for all.
  int launched = 0;
  bool speaks = true;
  try {
    launched = meshwise::shared_memory::size();
    speaks = meshwise::shared_memory::rank() <= 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
  const auto refuse = [&](const std::string& why) {
    if (speaks) std::fprintf(stderr, "%s: %s\n", name, why.c_str());
    return 2;
  };
  meshwise::RunOptions options;
  if (count > 2) {
    return refuse("one argument at most, the number of ranks (1 to " + std::to_string(most) + "), but got " +
                  std::to_string(count - 1));
  }
  if (count == 2) {
    const std::string text = arguments[1];
    if (text == "--help" || text == "-h") {
      if (speaks) {
        std::printf("usage: %s [RANKS]\n%s RANKS: 1 to %d, 4 unless given.\n", name, purpose, most);
        std::printf("       meshwise-run -n RANKS %s\nThe same on processes instead of threads.\n", name);
      }
      return 0;
    }
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, options.ranks);
    if (problem != std::errc{} || stop != end || options.ranks < 1 || options.ranks > most) {
      return refuse("'" + text + "' is not a number of ranks; give a whole number from 1 to " + std::to_string(most));
    }
    if (launched > 0 && launched != options.ranks) {
      return refuse("RANKS is " + text + ", but " + std::to_string(launched) + " are started; leave RANKS out");
    }
  } else if (launched == 0 && std::getenv("MESHWISE_RANKS") == nullptr) {
    options.ranks = 4;
  }
  return meshwise::run<Fabrics>(options, program);
}

}  // namespace examples
