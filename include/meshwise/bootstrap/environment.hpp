// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshwise/bootstrap/detail/text.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"

namespace meshwise {

/// What a process that a launcher has started knows of its job: who it is, and the descriptors of what all ranks share.
///
/// Lifetime: names descriptors, owns none.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the ranks on this host
  int local_size = 1;
  int control = -1;         ///< the control segment
  std::vector<int> arenas;  ///< the memory of every rank
};

namespace detail {

/// The variables that a Place is written in, as they stand in an environment; null: not set.
struct PlaceVariables {
  static constexpr int count = 5;
  static constexpr const char* names[count] = {"MESHWISE_RANK", "MESHWISE_SIZE", "MESHWISE_LOCAL_RANK",
                                               "MESHWISE_LOCAL_SIZE", "MESHWISE_JOB"};
  const char* values[count] = {};
};

/// Checks what others have written, and trusts nothing of it.
class PlaceReader {
 public:
  static std::optional<Place> read(const PlaceVariables& variables) {
    const char* set = nullptr;
    const char* missing = nullptr;
    for (int k = 0; k < PlaceVariables::count; ++k) {
      (variables.values[k] != nullptr ? set : missing) = PlaceVariables::names[k];
    }
    if (set == nullptr) return std::nullopt;
    if (missing != nullptr) {
      fail(missing, "a value, because " + std::string(set) + " is set", "none",
           "start the program by meshwise-run, or remove the other MESHWISE_ variables of a launcher");
    }
    Place place;
    place.size = number(1, variables.values[1], 1, Control::most_ranks, "ranks");
    place.rank = number(0, variables.values[0], 0, place.size - 1, "of a rank below MESHWISE_SIZE");
    place.local_size = number(3, variables.values[3], 1, place.size, "ranks up to MESHWISE_SIZE");
    place.local_rank = number(2, variables.values[2], 0, place.local_size - 1, "of a rank below MESHWISE_LOCAL_SIZE");
    if (place.local_size != place.size) {
      fail(PlaceVariables::names[3], std::to_string(place.size) + " as MESHWISE_SIZE: all ranks on this host",
           std::to_string(place.local_size), "start all ranks by one meshwise-run");
    }
    read_job(variables.values[4], place);
    return place;
  }

  /// What MESHWISE_JOB says of these descriptors: "control=5;arenas=6-8,12".
  static std::string job(int control, const std::vector<int>& arenas) {
    std::string text = "control=" + std::to_string(control) + ";arenas=";
    for (std::size_t k = 0; k < arenas.size(); ++k) {
      std::size_t last = k;
      while (last + 1 < arenas.size() && arenas[last + 1] == arenas[last] + 1) ++last;
      text += (k == 0 ? "" : ",") + std::to_string(arenas[k]);
      if (last > k) text += "-" + std::to_string(arenas[last]);
      k = last;
    }
    return text;
  }

 private:
  static constexpr int most_descriptors = 1 << 20;

  static int number(int variable, std::string_view text, int least, int most, const char* what) {
    const int value = whole_number(text, least, most);
    if (value < least) {
      fail(PlaceVariables::names[variable],
           "a number " + std::string(what) + ", " + std::to_string(least) + " to " + std::to_string(most), quoted(text),
           "leave it as meshwise-run has set it");
    }
    return value;
  }

  [[noreturn]] static void refuse_job(const std::string& expected, const std::string& found) {
    fail(PlaceVariables::names[4], expected, found, "leave it as meshwise-run has set it");
  }

  static int descriptor(std::string_view text) {
    const int value = whole_number(text, 0, most_descriptors);
    if (value < 0) refuse_job("the number of a descriptor", quoted(text));
    return value;
  }

  static void check_open(int descriptor, int rank) {
    if (fcntl(descriptor, F_GETFD) >= 0) return;
    fail(PlaceVariables::names[4], "descriptor " + std::to_string(descriptor) + " as the launcher has passed it on",
         "that it is closed",
         "join the job once in each process, and let nothing between meshwise-run and the program close descriptors",
         rank);
  }

  static void read_job(std::string_view text, Place& place) {
    constexpr std::string_view first = "control=";
    constexpr std::string_view second = "arenas=";
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos || text.substr(0, first.size()) != first ||
        text.substr(end + 1, second.size()) != second) {
      refuse_job("control=DESCRIPTOR;arenas=DESCRIPTORS", quoted(text));
    }
    place.control = descriptor(text.substr(first.size(), end - first.size()));
    std::string_view rest = text.substr(end + 1 + second.size());
    const auto ranks = static_cast<std::size_t>(place.size);
    while (true) {
      const std::size_t comma = rest.find(',');
      const std::string_view run = rest.substr(0, comma);
      const std::size_t dash = run.find('-');
      const int from = descriptor(run.substr(0, dash));
      const int to = dash == std::string_view::npos ? from : descriptor(run.substr(dash + 1));
      if (to < from || static_cast<std::size_t>(to - from) >= ranks - place.arenas.size()) {
        refuse_job("one arena for each of " + std::to_string(ranks) + " ranks", quoted(rest));
      }
      for (int one = from; one <= to; ++one) place.arenas.push_back(one);
      if (comma == std::string_view::npos) break;
      if (place.arenas.size() == ranks) refuse_job("arenas of " + std::to_string(ranks) + " ranks", "more");
      rest = rest.substr(comma + 1);
    }
    if (place.arenas.size() != ranks) {
      refuse_job("arenas of " + std::to_string(ranks) + " ranks", std::to_string(place.arenas.size()));
    }
    check_open(place.control, place.rank);
    for (std::size_t k = 0; k < ranks; ++k) {
      bool twice = place.arenas[k] == place.control;
      for (std::size_t other = 0; other < k; ++other) twice = twice || place.arenas[other] == place.arenas[k];
      if (twice) refuse_job("every descriptor once", std::to_string(place.arenas[k]) + " twice");
      check_open(place.arenas[k], place.rank);
    }
  }
};

}  // namespace detail

/// The place in a job that a launcher has written into the environment; empty where none has.
///
/// Reads MESHWISE_RANK, MESHWISE_SIZE, MESHWISE_LOCAL_RANK, MESHWISE_LOCAL_SIZE and MESHWISE_JOB.
/// Cost: one system call per descriptor.
/// Errors: `invalid_argument` if some are set and others not, a number is none or out of its range, or a descriptor is
/// missing, named twice or closed.
inline std::optional<Place> place_from_environment() {
  detail::PlaceVariables variables;
  for (int k = 0; k < detail::PlaceVariables::count; ++k) {
    variables.values[k] = std::getenv(detail::PlaceVariables::names[k]);
  }
  return detail::PlaceReader::read(variables);
}

}  // namespace meshwise
