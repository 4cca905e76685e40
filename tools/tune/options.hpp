// SPDX-License-Identifier: Apache-2.0
// The command line of meshwise-tune.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "meshwise/fabric/shared_memory/control.hpp"
#include "meshwise/schedule/selection_table.hpp"
#include "meshwise/schedule/settings.hpp"

namespace tune {

using meshwise::Operation;
using meshwise::Way;

constexpr const char* help = R"(usage: meshwise-tune [OPTION]...

Measures the algorithms of the library against each other on this host and writes a table of the best ones. Programs
use it when MESHWISE_TUNING names the file; a table of another host, or of another version of the library, they ignore
with one line on stderr.

  --ranks N,N,...       sizes of groups (default 2,4,8); a group of another size takes the rules of the nearest size
                        below its own, but of none below half of it
  --fabric F,F          shared_memory: ranks are processes; thread: they are threads (default: both)
  --operations O,O,...  of all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, gather, scatter,
                        inclusive_scan, exclusive_scan (default: all but the scans)
  --ways W,W,...        how operands get from rank to rank (default: all)
                          memory    buffers that all ranks address: the library's heap, register_buffer, threads
                          foreign   private buffers (processes only): through windows, or by messages
                          messages  send and receive (LaunchOptions::messages)
  -b, --minbytes N      smallest and largest size, with K, M or G (default 64 and 16M); sizes grow by a factor of 4 and
  -e, --maxbytes N      stand for the range around them, the first and the last one for all beyond
  --seconds N           about how long to measure, 1 to 86400 (default 300)
  --output FILE         where to write the table (default: standard output)
  --check FILE          measure nothing: say whether a table is right and was measured here; exit code 1 if not
  --help, --version

What the library does by itself ("automatic") alternates with every algorithm that can do the operation, also cut into
several lanes, in one run. A size takes the time of the slowest rank, out of place, of floats, from a barrier on. An
algorithm goes into the table where it is faster by 2 % at least, by the 95 % interval of the median ratio; everything
else is left to the library. Measure on a host that does nothing else.

Exit code: 0; 1 what was measured cannot be written, or a check fails; 2 wrong usage.
)";

/// Wrong usage: one line.
struct Refusal {
  std::string text;
};

struct Options {
  std::vector<int> ranks{2, 4, 8};
  std::vector<std::string> fabrics{"shared_memory", "thread"};
  std::vector<Operation> operations{Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                    Operation::all_to_all, Operation::broadcast,      Operation::reduce,
                                    Operation::gather,     Operation::scatter};
  std::vector<Way> ways{Way::memory, Way::foreign, Way::messages};
  std::uint64_t least = 64;
  std::uint64_t most = std::uint64_t{16} << 20;
  double seconds = 300;
  std::string output;
  std::string check;
  const char* print = nullptr;  ///< a text instead

  /// The sizes to measure, each the middle of its range.
  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> result;
    for (std::uint64_t bytes = least; bytes <= most; bytes *= 4) result.push_back(bytes);
    return result;
  }
};

namespace detail {

inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > 60 ? "...\"" : "\"");
}

/// Calls take(part) for each part of a list, which is not empty.
template <class Take>
void each(std::string_view option, std::string_view list, const Take& take) {
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    if (part.empty()) throw Refusal{std::string(option) + " needs a list without empty parts, such as A,B"};
    take(part);
    if (comma == std::string_view::npos) return;
    list = list.substr(comma + 1);
  }
}

template <class T>
void add_once(std::string_view option, std::vector<T>& list, const T& value, std::string_view text) {
  for (const T& one : list) {
    if (one == value) throw Refusal{std::string(option) + " names " + quoted(text) + " twice"};
  }
  list.push_back(value);
}

inline std::uint64_t bytes(std::string_view option, std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M' || text.back() == 'G')) {
    shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : 30;
    digits.remove_suffix(1);
  }
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  constexpr std::uint64_t most = std::uint64_t{1} << 34;
  if (problem != std::errc{} || stop != end || value > most >> shift || (value << shift) < 8 ||
      (value & (value - 1)) != 0) {
    throw Refusal{std::string(option) + " needs a power of two from 8 to 16G, not " + quoted(text)};
  }
  return value << shift;
}

inline bool measurable(Operation operation) { return operation != Operation::exchange; }

}  // namespace detail

inline Options read(int count, char** arguments) {
  Options options;
  int next = 1;
  while (next < count) {
    const std::string_view word = arguments[next++];
    const bool is_long = word.substr(0, 2) == "--";
    const std::size_t equals = is_long ? word.find('=') : std::string_view::npos;
    const std::string_view option = word.substr(0, equals);
    const auto value = [&]() -> std::string_view {
      if (equals != std::string_view::npos) return word.substr(equals + 1);
      if (next == count) throw Refusal{std::string(option) + " needs a value behind it"};
      return arguments[next++];
    };
    if (option == "--ranks") {
      options.ranks.clear();
      detail::each(option, value(), [&](std::string_view part) {
        int ranks = 0;
        const char* const end = part.data() + part.size();
        const auto [stop, problem] = std::from_chars(part.data(), end, ranks);
        const int most = meshwise::detail::Control::most_ranks;
        if (problem != std::errc{} || stop != end || ranks < 2 || ranks > most) {
          throw Refusal{"--ranks needs whole numbers from 2 to " + std::to_string(most) + ", not " +
                        detail::quoted(part)};
        }
        detail::add_once(option, options.ranks, ranks, part);
      });
    } else if (option == "--fabric") {
      options.fabrics.clear();
      detail::each(option, value(), [&](std::string_view part) {
        if (part != "thread" && part != "shared_memory") {
          throw Refusal{"--fabric needs shared_memory, thread or both, not " + detail::quoted(part)};
        }
        detail::add_once(option, options.fabrics, std::string(part), part);
      });
    } else if (option == "--operations" || option == "--ops") {
      options.operations.clear();
      detail::each(option, value(), [&](std::string_view part) {
        Operation operation{};
        if (!meshwise::parse(part, operation) || !detail::measurable(operation)) {
          throw Refusal{"--operations does not know " + detail::quoted(part)};
        }
        detail::add_once(option, options.operations, operation, part);
      });
    } else if (option == "--ways") {
      options.ways.clear();
      detail::each(option, value(), [&](std::string_view part) {
        for (int k = 0; k < meshwise::way_count; ++k) {
          if (part == meshwise::way_name(static_cast<Way>(k))) {
            return detail::add_once(option, options.ways, static_cast<Way>(k), part);
          }
        }
        throw Refusal{"--ways needs memory, foreign or messages, not " + detail::quoted(part)};
      });
    } else if (option == "-b" || option == "--minbytes") {
      options.least = detail::bytes(option, value());
    } else if (option == "-e" || option == "--maxbytes") {
      options.most = detail::bytes(option, value());
    } else if (option == "--seconds") {
      const std::string_view text = value();
      const char* const end = text.data() + text.size();
      const auto [stop, problem] = std::from_chars(text.data(), end, options.seconds);
      if (problem != std::errc{} || stop != end || !(options.seconds >= 1 && options.seconds <= 86400)) {
        throw Refusal{"--seconds needs a number from 1 to 86400, not " + detail::quoted(text)};
      }
    } else if (option == "--output" || option == "-o") {
      options.output = value();
      if (options.output.empty()) throw Refusal{"--output needs the name of a file"};
    } else if (option == "--check") {
      options.check = value();
      if (options.check.empty()) throw Refusal{"--check needs the name of a file"};
    } else if (option == "--help" || option == "-h") {
      options.print = help;
      return options;
    } else if (option == "--version") {
      options.print = "";
      return options;
    } else {
      throw Refusal{(word.substr(0, 1) == "-" ? "unknown option " : "unexpected ") + detail::quoted(word)};
    }
  }
  if (options.least > options.most) throw Refusal{"--minbytes is greater than --maxbytes"};
  return options;
}

}  // namespace tune
