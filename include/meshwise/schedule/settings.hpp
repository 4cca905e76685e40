// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "meshwise/core/detail/mix.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/core/log.hpp"
#include "meshwise/schedule/algorithm.hpp"
#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/selection_table.hpp"

namespace meshwise {

/// How many operations there are: their values are 0 to this.
inline constexpr int operation_count = static_cast<int>(Operation::exchange) + 1;

/// The most lanes that can be asked for.
inline constexpr int most_lanes = 1024;

/// The algorithm of that name; false, and `algorithm` stays as it is, if there is none.
constexpr bool parse(std::string_view name, Algorithm& algorithm) {
  for (int k = 0; k < algorithm_count; ++k) {
    if (name != algorithm_name(static_cast<Algorithm>(k))) continue;
    algorithm = static_cast<Algorithm>(k);
    return true;
  }
  return false;
}

/// The operation of that name; false, and `operation` stays as it is, if there is none.
constexpr bool parse(std::string_view name, Operation& operation) {
  for (int k = 0; k < operation_count; ++k) {
    if (name != operation_name(static_cast<Operation>(k))) continue;
    operation = static_cast<Operation>(k);
    return true;
  }
  return false;
}

/// What is forced upon the selector, by operation, what has been measured for it, and how much the job says. Read once
/// by whoever makes the world and shared with all ranks: if ranks read their own environments, two of them could choose
/// differently and wait for each other for ever.
struct Settings {
  struct Forced {
    Algorithm algorithm = Algorithm::automatic;  ///< automatic: nothing is forced
    int lanes = 0;                               ///< 0: nothing is forced

    friend constexpr bool operator==(const Forced&, const Forced&) = default;
  };

  Forced forced[static_cast<std::size_t>(operation_count)];
  LogLevel log = LogLevel::warning;
  SelectionTable table;     ///< empty: those who start ranks read the one that MESHWISE_TUNING names
  std::uint64_t cache = 0;  ///< bytes of a core's second-level cache, which decide about windows; 0: those who start
                            ///< ranks look it up

  constexpr const Forced& of(Operation operation) const { return forced[static_cast<std::size_t>(operation)]; }
  constexpr Forced& of(Operation operation) { return forced[static_cast<std::size_t>(operation)]; }

  /// Reads the two texts; empty ones force nothing.
  ///
  /// algorithms: entries separated by ';', each "[OPERATION=]ALGORITHM[:lanes=N]", such as
  /// "all_reduce=ring;broadcast=binomial:lanes=4;circulant"; an entry without an operation is for all those that have
  /// no entry of their own. lanes: entries "[OPERATION=]N"; they win over the lanes of the first text.
  /// Errors: `invalid_argument` for an unknown name, a number that is none, or an operation named twice.
  static Settings parse(std::string_view algorithms, std::string_view lanes) {
    Settings settings;
    settings.read("MESHWISE_ALGORITHM", algorithms, true);
    settings.read("MESHWISE_LANES", lanes, false);
    return settings;
  }

  /// The level of that name; of an empty one, the usual level. Errors: `invalid_argument` for an unknown name.
  static LogLevel parse_log(std::string_view name) {
    LogLevel level = Settings().log;
    if (trimmed(name).empty() || meshwise::parse(trimmed(name), level)) return level;
    std::string names;
    for (int k = 0; k < log_level_count; ++k) {
      names += (k == 0 ? "" : ", ") + std::string(log_level_name(static_cast<LogLevel>(k)));
    }
    fail("MESHWISE_LOG", "one of " + names, quoted(name), "choose one, or remove the variable");
  }

  /// From MESHWISE_ALGORITHM, MESHWISE_LANES and MESHWISE_LOG. Errors: as `parse` and `parse_log`.
  static Settings from_environment() {
    const auto text = [](const char* name) {
      const char* const value = std::getenv(name);
      return std::string_view(value == nullptr ? "" : value);
    };
    Settings settings = parse(text("MESHWISE_ALGORITHM"), text("MESHWISE_LANES"));
    settings.log = parse_log(text("MESHWISE_LOG"));
    return settings;
  }

  /// The same for settings that force the same, by the same table, on all machines.
  constexpr std::uint64_t signature() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const Forced& one : forced) {
      hash = (hash ^ static_cast<std::uint64_t>(one.algorithm)) * 0x100000001b3;
      hash = (hash ^ static_cast<std::uint64_t>(one.lanes)) * 0x100000001b3;
    }
    return table.empty() ? hash : detail::mix(hash, table.signature());
  }

  friend bool operator==(const Settings&, const Settings&) = default;

 private:
  static std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
  }

  /// Cuts the text before the first separator off; the rest stays, empty if there is no separator.
  static std::string_view cut(std::string_view& text, char separator) {
    const std::size_t at = text.find(separator);
    const std::string_view head = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return trimmed(head);
  }

  /// What the text says, fit for one line of a message: short, and without bytes that a terminal would obey.
  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result + (text.size() > 40 ? "...\"" : "\"");
  }

  static int number(const char* variable, std::string_view text) {
    int value = 0;
    for (const char c : text)
      value = c >= '0' && c <= '9' && value <= most_lanes ? value * 10 + (c - '0') : most_lanes + 1;
    if (text.empty() || value < 1 || value > most_lanes) {
      fail(variable, "a number of lanes from 1 to " + std::to_string(most_lanes), quoted(text),
           "write for example broadcast=binomial:lanes=4");
    }
    return value;
  }

  static std::string names_of_algorithms() {
    std::string names;
    for (int k = 0; k < algorithm_count - 1; ++k) {
      names += (k == 0 ? "" : ", ") + std::string(algorithm_name(static_cast<Algorithm>(k)));
    }
    return names;
  }

  static std::string names_of_operations() {
    std::string names;
    for (int k = 0; k < operation_count; ++k) {
      names += (k == 0 ? "" : ", ") + std::string(operation_name(static_cast<Operation>(k)));
    }
    return names;
  }

  void read(const char* variable, std::string_view text, bool algorithms) {
    bool named[static_cast<std::size_t>(operation_count) + 1] = {};
    Forced rest;
    while (!text.empty()) {
      std::string_view entry = cut(text, ';');
      if (entry.empty()) continue;
      const std::string_view before_options = entry.substr(0, entry.find(':'));
      int target = operation_count;  // all the others
      if (before_options.find('=') != std::string_view::npos) {
        const std::string_view name = cut(entry, '=');
        Operation operation{};
        if (!meshwise::parse(name, operation)) {
          fail(variable, "one of " + names_of_operations(), quoted(name), "write OPERATION=VALUE entries, ';' between");
        }
        target = static_cast<int>(operation);
      }
      if (named[target]) {
        fail(variable, "one entry for each operation", "a second one, " + quoted(entry), "remove one of the two");
      }
      named[target] = true;
      Forced one = target < operation_count ? forced[target] : rest;
      if (algorithms) {
        one = read_algorithm(variable, entry);
      } else {
        one.lanes = number(variable, trimmed(entry));
      }
      (target < operation_count ? forced[target] : rest) = one;
    }
    if (!named[operation_count]) return;
    for (int k = 0; k < operation_count; ++k) {
      if (named[k]) continue;
      if (algorithms) forced[k].algorithm = rest.algorithm;
      if (rest.lanes != 0) forced[k].lanes = rest.lanes;
    }
  }

  static Forced read_algorithm(const char* variable, std::string_view entry) {
    Forced one;
    const std::string_view name = cut(entry, ':');
    if (!meshwise::parse(name, one.algorithm) || one.algorithm == Algorithm::custom) {
      fail(variable, "one of " + names_of_algorithms(), quoted(name), "write for example all_reduce=ring");
    }
    while (!entry.empty()) {
      std::string_view option = cut(entry, ':');
      const std::string_view key = cut(option, '=');
      if (key != "lanes") fail(variable, "the option lanes=N", quoted(key), "write for example ring:lanes=4");
      one.lanes = number(variable, trimmed(option));
    }
    return one;
  }
};

}  // namespace meshwise
