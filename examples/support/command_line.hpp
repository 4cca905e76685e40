// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

namespace examples {

/// The command line that all small examples have: `program [RANKS]`, 4 ranks unless told otherwise.
///
/// Calls program(ranks), which throws when something is not as it should be, and returns the exit code: 0 when all was
/// well, 1 when program threw, 2 for arguments that cannot work. purpose: one sentence for --help.
template <class Program>
int main(int count, char** arguments, const char* purpose, const Program& program) {
  constexpr int most = 64;  // each rank is a thread
  const char* slash = std::strrchr(arguments[0], '/');
  const char* name = slash != nullptr ? slash + 1 : arguments[0];
  int ranks = 4;
  if (count > 2) {
    std::fprintf(stderr, "%s: one argument at most, the number of ranks (1 to %d), but got %d\n", name, most,
                 count - 1);
    return 2;
  }
  if (count == 2) {
    const std::string text = arguments[1];
    if (text == "--help" || text == "-h") {
      std::printf("usage: %s [RANKS]\n%s RANKS: 1 to %d, 4 unless given.\n", name, purpose, most);
      return 0;
    }
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, ranks);
    if (problem != std::errc{} || stop != end || ranks < 1 || ranks > most) {
      std::fprintf(stderr, "%s: '%s' is not a number of ranks; give a whole number from 1 to %d\n", name, arguments[1],
                   most);
      return 2;
    }
  }
  try {
    program(ranks);
    return 0;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace examples
