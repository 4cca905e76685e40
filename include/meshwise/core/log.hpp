// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshwise {

/// How much a job says on stderr: each level says what the ones before it say, too.
enum class LogLevel : std::uint8_t {
  off,
  error,    ///< who waited for whom, when a group ends for want of a rank; errors themselves are thrown
  warning,  ///< what was asked for and is not done
  info,     ///< how a job has been started
  debug,    ///< groups as they come and go, errors as they are found
};

inline constexpr int log_level_count = static_cast<int>(LogLevel::debug) + 1;

/// The name of a level, such as "warning".
constexpr const char* log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::off: return "off";
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "unknown";
}

/// The level of that name; false, and `level` stays as it is, if there is none.
constexpr bool parse(std::string_view name, LogLevel& level) {
  for (int k = 0; k < log_level_count; ++k) {
    if (name != log_level_name(static_cast<LogLevel>(k))) continue;
    level = static_cast<LogLevel>(k);
    return true;
  }
  return false;
}

namespace detail {

/// Says on stderr what has at least the importance that was chosen.
///
/// Cost: of what is not said, one comparison, if its text is not made before `says`. One call of the system for each
/// text, so that those of several ranks do not mix. A value; from any thread.
class Log {
 public:
  /// rank: who speaks, in the job; negative: the job.
  explicit constexpr Log(LogLevel level = LogLevel::warning, int rank = -1) : level_(level), rank_(rank) {}

  constexpr bool says(LogLevel level) const { return level != LogLevel::off && level <= level_; }

  /// "meshwise[rank 3] warning: ..." and a line's end.
  void write(LogLevel level, const std::string& text) const noexcept {
    if (!says(level)) return;
    try {
      std::string message = rank_ < 0 ? std::string("meshwise ") : "meshwise[rank " + std::to_string(rank_) + "] ";
      message += log_level_name(level);
      message += ": " + text;
      if (message.back() != '\n') message += '\n';
      // Who reads it, if anybody, cannot be helped.
      if (::write(2, message.data(), message.size()) < 0) return;
    } catch (...) {
      // Without memory for the text nothing is said.
    }
  }

 private:
  LogLevel level_;
  int rank_;
};

}  // namespace detail
}  // namespace meshwise
