// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "board.hpp"
#include "operation.hpp"

namespace peers {

struct Options {
  std::vector<int> ranks{2, 4, 8};
  std::vector<Operation> operations;
  std::vector<std::size_t> sizes;                         ///< empty: the usual ones, which depend on the ranks
  std::vector<std::string> only;                          ///< peers whose names begin so
  std::vector<std::pair<std::string, std::string>> more;  ///< name and command of further peers
  std::string json;
  int pairs = 15;
  double milliseconds = 4;  ///< of a batch
  bool registered = true;
  bool foreign = true;
  bool kept = true;
  bool rewritten = false;
  bool bars = false;
  bool all = false;   ///< also peers that are known to be hopeless
  bool busy = false;  ///< count what is measured while other programs run
  bool list = false;
  bool verbose = false;
  bool help = false;
};

inline constexpr const char* usage_text =
    R"(usage: meshwise-peers [OPTION...]

The same collectives by meshwise and by the other libraries that are found, in one run: Open MPI, MPICH, Gloo and UCC,
each in the settings that do best somewhere. Of every point the settings are scouted first; then the best two and
meshwise take turns, and what is printed is the ratio of medians of each pair, its median and an interval that holds it
with 95 % (order statistics). Ranks are processes, rank r on core r modulo their number; they meet before each call, and
a call has taken as long as on the rank that took longest. Floats, summed.

  --ranks N,...          2,4,8
  --ops NAME,...         all_reduce all_reduce_in_place reduce_scatter reduce broadcast all_gather all_to_all gather
                         scatter send_recv (one way, 2 ranks) exchange (each to the next, as nccl-tests' sendrecv)
                         barrier; or all
  --sizes BYTES,...      as nccl-tests counts, with K, M or G; 8,1K,32K,256K,1M,16M,64M, and 256M on 2 ranks
  --pairs N              15; pairs during which the hypervisor has moved the cores, or another program has wanted one,
                         are repeated, up to twice as often again
  --milliseconds T       4; how long a batch of calls is
  --buffers KIND,...     of meshwise: registered (in the library's heap), foreign (ordinary); both
  --rewrite              owners write their input before each call, so that it is in their caches and nobody else's
  --inputs KIND,...      kept (unless said otherwise), rewritten
  --bars                 judge each point by what is asked of it; exit code 1 if one fails: all of its interval is
                         below, and it moves its bytes at less than 85 % of the memory's limit
  --only NAME,...        peers whose names begin so; see --list
  --peer NAME=COMMAND    one more: COMMAND starts {ranks} processes of benchmarks/peers/mpi.cpp, compiled with its own
                         MPI, such as 'mpiexec -n {ranks} ./peer_own'
  --all                  also what is known to be hopeless (MPICH with more ranks than cores)
  --busy                 take no notice of other programs that are running: small calls are often quick enough to get by
  --json FILE            write all figures, with what is known of this host
  --list                 say what peers there are
  --verbose              say what is being done
  --help

Columns: times in us; ratio: peer / meshwise (more than 1: meshwise is faster); % limit: bytes that the call has to read
and write at least, against a copy by all cores measured beside it; cores: whether a cache line takes less than 200 ns
(near) or more (far) to the other core and back, in all pairs that count; busy or mixed: other programs were running, or
the cores were moved too often, and all pairs count, but the point is not judged; see --busy.
)";

namespace detail_options {

[[noreturn]] inline void refuse(const std::string& what) { throw std::invalid_argument(what + "; see --help"); }

template <class Each>
void split(std::string_view list, const Each& each) {
  while (true) {
    const std::size_t comma = list.find(',');
    each(std::string(list.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace detail_options

/// Bytes, with K, M or G for powers of 1024. Throws where it is no such number.
inline std::size_t size_of_text(const std::string& text) {
  char* end = nullptr;
  const bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const unsigned long long value = digits ? std::strtoull(text.c_str(), &end, 10) : 0;
  int shift = 0;
  if (digits && *end != '\0') {
    shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : *end == 'G' || *end == 'g' ? 30 : -1;
    if (end[1] != '\0') shift = -1;
  }
  if (!digits || shift < 0 || value == 0 || value > (std::size_t{1} << 33) >> shift) {
    detail_options::refuse("a size from 1 to 8G was expected, such as 8, 32K or 16M, not '" + text + "'");
  }
  return static_cast<std::size_t>(value) << shift;
}

inline int number_of_text(const char* option, const std::string& text, int least, int most) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > most) {
    detail_options::refuse(std::string(option) + " takes numbers from " + std::to_string(least) + " to " +
                           std::to_string(most) + ", not '" + text + "'");
  }
  return static_cast<int>(value);
}

/// Throws std::invalid_argument with a text for the user.
inline Options options_of(int count, const char* const* arguments) {
  using detail_options::refuse;
  using detail_options::split;
  Options options;
  for (int k = 1; k < count; ++k) {
    const std::string word = arguments[k];
    const auto value = [&]() -> std::string {
      if (k + 1 >= count) refuse(word + " needs a value");
      return arguments[++k];
    };
    const auto pick = [&](const char* first, bool& one, const char* second, bool& other) {
      one = other = false;
      split(value(), [&](const std::string& name) {
        if (name != first && name != second)
          refuse(word + " takes " + first + " and " + second + ", not '" + name + "'");
        (name == first ? one : other) = true;
      });
    };
    if (word == "--ranks") {
      options.ranks.clear();
      split(value(), [&](const std::string& one) {
        options.ranks.push_back(number_of_text("--ranks", one, 2, Board::most_ranks));
      });
    } else if (word == "--ops") {
      split(value(), [&](const std::string& name) {
        if (name == "all") return;
        const int found = operation_named(name);
        if (found == operations) refuse("there is no operation '" + name + "'");
        options.operations.push_back(static_cast<Operation>(found));
      });
    } else if (word == "--sizes") {
      split(value(), [&](const std::string& one) { options.sizes.push_back(size_of_text(one)); });
    } else if (word == "--pairs") {
      options.pairs = number_of_text("--pairs", value(), 1, 1000);
    } else if (word == "--milliseconds") {
      options.milliseconds = number_of_text("--milliseconds", value(), 1, 10000);
    } else if (word == "--buffers") {
      pick("registered", options.registered, "foreign", options.foreign);
    } else if (word == "--inputs") {
      pick("kept", options.kept, "rewritten", options.rewritten);
    } else if (word == "--rewrite") {
      options.kept = false;
      options.rewritten = true;
    } else if (word == "--bars") {
      options.bars = true;
    } else if (word == "--only") {
      split(value(), [&](const std::string& name) { options.only.push_back(name); });
    } else if (word == "--peer") {
      const std::string text = value();
      const std::size_t equal = text.find('=');
      if (equal == 0 || equal == std::string::npos || equal + 1 == text.size()) refuse("--peer takes NAME=COMMAND");
      options.more.emplace_back(text.substr(0, equal), text.substr(equal + 1));
    } else if (word == "--all") {
      options.all = true;
    } else if (word == "--busy") {
      options.busy = true;
    } else if (word == "--json") {
      options.json = value();
    } else if (word == "--list") {
      options.list = true;
    } else if (word == "--verbose") {
      options.verbose = true;
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else {
      refuse("unknown option '" + word + "'");
    }
  }
  if (options.operations.empty()) {
    for (int k = 0; k < operations; ++k) options.operations.push_back(static_cast<Operation>(k));
  }
  return options;
}

/// The sizes of an operation's points.
inline std::vector<std::size_t> sizes_of(const Options& options, Operation operation, int ranks) {
  if (operation == Operation::barrier) return {0};
  if (!options.sizes.empty()) return options.sizes;
  constexpr std::size_t k = 1024;
  std::vector<std::size_t> sizes{8, k, 32 * k, 256 * k, k * k, 16 * k * k, 64 * k * k};
  if (ranks == 2) sizes.push_back(256 * k * k);
  return sizes;
}

}  // namespace peers
