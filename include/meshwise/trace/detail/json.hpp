// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "meshwise/trace/timeline.hpp"

namespace meshwise::detail {

/// The length of the UTF-8 sequence that a text begins with, 0 if it is none: too short, overlong, a surrogate, or
/// beyond the last code point.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
  }
  const bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return bad ? 0 : length;
}

/// Appends a text as a JSON string. Bytes that are no UTF-8 become U+FFFD, one each.
inline void append_json(std::string& out, std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      (out += '\\') += text.front();
    } else if (c < 0x20) {
      ((out += "\\u00") += digits[c >> 4]) += digits[c & 15];
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

/// One rank's events in Chrome's trace format, separated by commas: a process per rank, its program as thread 0, what
/// is in flight as asynchronous events. Source: "Trace Event Format", the Chromium project.
///
/// origin: the time that becomes 0. now: when events end that have not ended.
inline std::string trace_events(const Timeline& timeline, int rank, std::int64_t origin, std::int64_t now) {
  const std::string pid = std::to_string(rank);
  std::string out = "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + pid + ",\"args\":{\"name\":\"rank " + pid +
                    "\"}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":" + pid +
                    ",\"args\":{\"sort_index\":" + pid + "}},\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + pid +
                    ",\"tid\":0,\"args\":{\"name\":\"program\"}}";
  const auto microseconds = [](std::int64_t nanoseconds) {
    std::string text = std::to_string(nanoseconds % 1000);
    return std::to_string(nanoseconds / 1000) + "." + std::string(3 - text.size(), '0') + text;
  };
  std::size_t number = 0;
  for (const Timeline::Event& event : timeline.events()) {
    const bool span = event.kind == Timeline::Kind::span, flight = event.kind == Timeline::Kind::flight;
    const std::int64_t end = event.end != 0 ? event.end : now;
    std::string common = ",\"name\":";
    append_json(common, (event.kind == Timeline::Kind::wait ? "wait for " : "") + event.name +
                            (event.axis.empty() ? "" : " " + event.axis));
    common += std::string(",\"cat\":\"") + (span ? "program" : "communication") + "\",\"pid\":" + pid + ",\"tid\":0";
    std::string args;
    if (!span) {
      args += ",\"args\":{\"axis\":";
      append_json(args, event.axis);
      args += ",\"ranks\":" + std::to_string(event.ranks) + ",\"bytes\":" + std::to_string(event.bytes);
      if (event.peer >= 0) args += ",\"peer\":" + std::to_string(event.peer);
      args += "}";
    }
    const std::string at = ",\"ts\":" + microseconds(event.begin - origin);
    if (flight) {
      common += ",\"id\":\"" + pid + "-" + std::to_string(++number) + "\"";
      out += ",\n{\"ph\":\"b\"" + common + at + args + "},\n{\"ph\":\"e\"" + common +
             ",\"ts\":" + microseconds(end - origin) + "}";
    } else {
      out += ",\n{\"ph\":\"X\"" + common + at + ",\"dur\":" + microseconds(end - event.begin) + args + "}";
    }
  }
  return out;
}

}  // namespace meshwise::detail
