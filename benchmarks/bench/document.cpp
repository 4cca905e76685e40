// SPDX-License-Identifier: Apache-2.0
#include "document.hpp"

#include <cstdio>
#include <stdexcept>

#include "json.hpp"
#include "json_reader.hpp"
#include "round_trip.hpp"

namespace harness {
namespace {

void write_timing(Json& json, const char* name, const Point& point, const Timing& timing) {
  if (!timing.measured) return;
  json.begin_object(name).member("us", timing.time).member("algbw", algorithm_bandwidth(point, timing.time));
  json.member("busbw", bus_bandwidth(point, timing.time));
  if (timing.wrong >= 0) json.member("wrong", timing.wrong);
  json.member("min_us", timing.least).member("median_us", timing.median).member("p99_us", timing.most);
  json.member("median_low_us", timing.low).member("median_high_us", timing.high);
  json.member("iterations", timing.iterations).member("batch", timing.batch);
  json.member("least_bytes_moved", timing.moved).member("percent_of_limit", percent_of_limit(point, timing)).end();
}

void write_point(Json& json, const Point& point) {
  json.object().member("operation", verb_name(point.verb)).member("ranks", point.ranks);
  json.member("fabric", fabric_name(point)).member("bytes", point.size).member("count", point.count);
  json.member("type", element_text(point.element));
  if (combines(point.verb)) json.member("redop", redop_name(point.redop));
  if (point.root >= 0) json.member("root", point.root);
  json.member("algorithm", meshwise::algorithm_name(point.algorithm));
  if (point.chosen[0] != '\0') json.member("chosen", std::string(point.chosen));
  if (point.lanes > 0) json.member("lanes", point.lanes);
  json.member("reproducible", point.reproducible).member("ragged", point.ragged);
  json.member("buffers", buffers_name(point)).member("caches", cache_name(point));
  json.member("placement", placement_between(point.round_trip_before, point.round_trip_after));
  json.member("round_trip_before_ns", point.round_trip_before).member("round_trip_after_ns", point.round_trip_after);
  json.member("limit_gbs", point.limit * 1e-9);
  write_timing(json, "out_of_place", point, point.out_of_place);
  write_timing(json, "in_place", point, point.in_place);
  json.end();
}

/// How the points of this program's own documents are called where they are drawn as somebody else's.
std::string own_name(const JsonValue& point) {
  std::string name = "other meshwise, " + point["fabric"].text;
  if (point["buffers"].text == "foreign") name += ", foreign";
  if (point["algorithm"].text != "automatic") name += ", " + point["algorithm"].text;
  if (point["caches"].text != "warm") name += ", " + point["caches"].text;
  return name;
}

void read_own(const JsonValue& point, PeerResults& results) {
  for (const char* form : {"out_of_place", "in_place"}) {
    const JsonValue& timing = point[form];
    if (timing.kind != JsonValue::Kind::object) continue;
    results.points.push_back({own_name(point), "", point["operation"].text, static_cast<int>(point["ranks"].number),
                              point["bytes"].number, timing["us"].number, form == std::string("in_place")});
  }
}

/// Of the peers' document: the best one of each point, which may be another one elsewhere.
void read_peer(const JsonValue& point, PeerResults& results) {
  const double microseconds = point["peer_us"].number;
  if (point["buffers"].text == "foreign" || point["inputs"].text == "rewritten") return;  // peers know no difference
  std::string operation = point["operation"].text;
  if (operation == "send_recv") return;  // theirs goes one way
  if (operation == "exchange") operation = "send_recv";
  const bool in_place = operation == "all_reduce_in_place" || operation == "broadcast";
  if (operation == "all_reduce_in_place") operation = "all_reduce";
  results.points.push_back({"best peer", point["peer"].text, operation, static_cast<int>(point["ranks"].number),
                            point["bytes"].number, microseconds, in_place});
}

}  // namespace

std::string document(const Options& options, const Host& host, const Board& board) {
  Json json;
  json.object().member("format", "meshwise-bench 1");
  write_host(json, host);
  json.begin_object("options").member("min_bytes", options.least).member("max_bytes", options.most);
  json.member("factor", options.factor).member("step", options.step).member("iterations", options.iterations);
  json.member("seconds", options.seconds).member("warm_up", options.warm_up).member("checks", options.checks);
  json.member("bound", options.bind).end().begin_array("points");
  for (std::size_t k = 0; k < board.size(); ++k) write_point(json, board[k]);
  json.end().end();
  return json.text() + "\n";
}

PeerResults peers_of(const std::string& text) {
  const JsonValue root = read_json(text);
  const std::string format = root["format"].text;
  const bool peers = format.rfind("meshwise-peers ", 0) == 0;
  if (!peers && format.rfind("meshwise-bench ", 0) != 0) {
    throw std::runtime_error("it has no \"format\" of ./run bench --peers or of meshwise-bench");
  }
  PeerResults results;
  results.host = root["host"]["processor"].text + ", " + root["host"]["date"].text;
  for (const JsonValue& point : root["points"].items) peers ? read_peer(point, results) : read_own(point, results);
  std::erase_if(results.points, [](const PeerPoint& point) { return !(point.microseconds > 0) || point.ranks < 1; });
  return results;
}

PeerResults read_peers(const std::string& path) {
  const std::string remedy = "; name a JSON file of ./run bench --peers or of meshwise-bench --json";
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw BadOption("--peers: " + path + " cannot be read" + remedy);
  std::string text;
  char piece[65536];
  for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, file)) > 0 && text.size() < 1U << 28;) {
    text.append(piece, n);
  }
  std::fclose(file);
  try {
    return peers_of(text);
  } catch (const std::runtime_error& error) {
    throw BadOption("--peers: " + path + ": " + error.what() + remedy);
  }
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error(path + " cannot be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((std::fclose(file) != 0) || !written) throw std::runtime_error(path + " could not be written to its end");
}

}  // namespace harness
