// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace meshwise::detail {

/// The whole number that a text is, without signs and blanks; least - 1 if it is none or out of the range. least >= 0.
constexpr int whole_number(std::string_view text, int least, int most) {
  long long value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > most) return least - 1;
    value = value * 10 + (c - '0');
  }
  return text.empty() || value < least || value > most ? least - 1 : static_cast<int>(value);
}

/// What somebody else has written, fit for one line of a message: short, and without bytes that a terminal would obey.
inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > 60 ? "...\"" : "\"");
}

/// "9 (Killed)".
inline std::string signal_text(int signal) {
  const char* const name = strsignal(signal);
  return std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

/// "0.5 s".
inline std::string seconds_text(double seconds) {
  char room[40];
  std::snprintf(room, sizeof(room), "%g s", seconds);
  return room;
}

/// "rank 3", "ranks 1, 2 and 5", "ranks 0, 1, 2, ... and 63": at most eight are named.
template <class Ranks>
std::string ranks_text(const Ranks& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const auto size = static_cast<int>(ranks.size());
  int k = 0;
  for (const int rank : ranks) {
    const bool last = k == size - 1;
    if (k < 7 || last) text += (k == 0 ? "" : last ? " and " : ", ") + std::to_string(rank);
    if (k == 7 && !last) text += ", ...";
    ++k;
  }
  return text;
}

}  // namespace meshwise::detail
