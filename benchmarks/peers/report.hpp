// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../bench/host.hpp"
#include "../bench/json.hpp"
#include "bars.hpp"
#include "options.hpp"
#include "point.hpp"

namespace peers {

/// 8, 32K, 16M.
inline std::string text_of_size(std::size_t bytes) {
  constexpr const char* units[] = {"", "K", "M", "G"};
  int unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

/// Four digits of a time.
inline std::string text_of_us(double us) {
  char text[32];
  std::snprintf(text, sizeof text, us < 10 ? "%.3f" : us < 100 ? "%.2f" : us < 1000 ? "%.1f" : "%.0f", us);
  return us > 0 ? text : "-";
}

/// None where too few pairs were of one placement.
inline Verdict verdict_of(const Point& point) {
  const bool known = !point.ratios.empty() && (point.placement == "near" || point.placement == "far");
  return known ? judge(point.bar, point.interval.high, point.of_limit) : Verdict::none;
}

/// The table, a line for each point as soon as it is known.
class Table {
 public:
  explicit Table(bool bars) : bars_(bars) {
    std::printf("%-20s %5s %6s %-10s %-9s | %-18s %9s | %9s | %7s %15s | %-5s %5s %7s", "operation", "ranks", "size",
                "buffers", "inputs", "best peer", "us", "meshwise", "ratio", "95 %", "cores", "pairs", "% limit");
    std::printf(bars_ ? " | %5s %s\n" : "\n", "bar", "verdict");
  }

  void add(const Point& point) {
    char interval[32] = "-", ratio[16] = "-", limit[16] = "-";
    if (!point.ratios.empty()) {
      std::snprintf(ratio, sizeof ratio, "%.2fx", point.ratio);
      std::snprintf(interval, sizeof interval, "%.2f to %.2f", point.interval.low, point.interval.high);
    }
    if (point.of_limit >= 0.05) std::snprintf(limit, sizeof limit, "%.1f", point.of_limit);
    const std::string size = point.operation == Operation::barrier ? "-" : text_of_size(point.bytes);
    std::printf("%-20s %5d %6s %-10s %-9s | %-18s %9s | %9s | %7s %15s | %-5s %5zu %7s", name_of(point.operation),
                point.ranks, size.c_str(), point.foreign ? "foreign" : "registered",
                point.rewritten ? "rewritten" : "kept", point.peer.empty() ? "none" : point.peer.c_str(),
                text_of_us(point.peer_us).c_str(), text_of_us(point.us).c_str(), ratio, interval,
                point.placement.c_str(), point.ratios.size(), limit);
    if (bars_) {
      char bar[16] = "-";
      if (point.bar > 0) std::snprintf(bar, sizeof bar, "%.1fx", point.bar);
      std::printf(" | %5s %s", bar, text_of(verdict_of(point)));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  bool bars_;
};

/// One document: the host, how it was measured, and every point.
inline std::string json_of(const harness::Host& host, const Options& options, const std::vector<Point>& points,
                           const std::vector<std::pair<std::string, std::string>>& libraries) {
  harness::Json json;
  json.object().member("format", "meshwise-peers 1");
  harness::write_host(json, host);
  json.begin_object("method").member("pairs", options.pairs).member("batch_ms", options.milliseconds);
  json.member("time", "median over calls of the maximum over ranks, us");
  json.member("interval", "95 % of the median ratio peer / meshwise, by order statistics").end();
  json.begin_object("libraries");
  for (const auto& [name, what] : libraries) json.member(name, what);
  json.end().begin_array("points");
  for (const Point& point : points) {
    json.object().member("operation", name_of(point.operation)).member("ranks", point.ranks);
    json.member("bytes", point.bytes).member("in_place", point.operation == Operation::all_reduce_in_place);
    json.member("buffers", point.foreign ? "foreign" : "registered");
    json.member("inputs", point.rewritten ? "rewritten" : "kept").member("peer", point.peer);
    json.member("peer_us", point.peer_us).member("us", point.us);
    const double bytes = static_cast<double>(point.bytes) * bus_factor(point.operation, point.ranks);
    if (point.peer_us > 0) json.member("peer_busbw", bytes / point.peer_us * 1e-3);
    if (point.us > 0) json.member("busbw", bytes / point.us * 1e-3);
    json.member("ratio", point.ratio).member("ratio_low", point.interval.low);
    json.member("ratio_high", point.interval.high).member("confidence", point.interval.confidence);
    json.member("pairs", point.ratios.size()).member("dropped", point.dropped).member("placement", point.placement);
    json.member("round_trip_ns", point.round_trip).member("limit_gbs", point.limit_gbs);
    json.member("percent_of_limit", point.of_limit).member("bar", point.bar);
    json.member("verdict", text_of(verdict_of(point))).begin_object("scouted_us");
    for (const auto& [name, us] : point.scouted) json.member(name, us);
    json.end().begin_array("notes");
    for (const std::string& note : point.notes) json.value(note);
    json.end().end();
  }
  json.end().end();
  return json.text() + "\n";
}

}  // namespace peers
