// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/document.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "../../../benchmarks/bench/json_reader.hpp"

namespace {

using harness::Board;
using harness::Host;
using harness::Options;
using harness::Point;
using harness::read_json;

Point point_of(harness::Verb verb, std::uint64_t size, double microseconds) {
  Point point;
  point.verb = verb;
  point.ranks = 2;
  point.size = size;
  point.count = size / 4;
  point.limit = 40e9;
  std::strcpy(point.chosen, "direct");
  point.in_place.measured = true;
  point.in_place.time = point.in_place.median = microseconds;
  point.in_place.moved = harness::least_bytes(verb, static_cast<double>(size), 2, true);
  point.in_place.wrong = 0;
  return point;
}

TEST_CASE("what is written is read again") {
  Board board(4);
  board.add(point_of(harness::Verb::all_reduce, 1 << 20, 100));
  board.add(point_of(harness::Verb::broadcast, 4096, 0.5));
  Host host;
  host.processor = "a \"quoted\" \\ name\twith a tab";
  const harness::JsonValue root = read_json(harness::document(Options(), host, board));
  CHECK(root["format"].text == "meshwise-bench 1");
  CHECK(root["host"]["processor"].text.find("\"quoted\" \\ name") != std::string::npos);
  REQUIRE(root["points"].items.size() == 2);
  const harness::JsonValue& point = root["points"].items[0];
  CHECK(point["operation"].text == "all_reduce");
  CHECK(point["bytes"].number == 1 << 20);
  CHECK(point["out_of_place"].kind == harness::JsonValue::Kind::null);
  CHECK(point["in_place"]["busbw"].number == doctest::Approx(10.48576));
  CHECK(point["in_place"]["percent_of_limit"].number == doctest::Approx(104.8576));
  CHECK(point["in_place"]["wrong"].number == 0);
}

TEST_CASE("own documents and those of the peers can be drawn") {
  Board board(4);
  board.add(point_of(harness::Verb::all_reduce, 1024, 2));
  const harness::PeerResults own = harness::peers_of(harness::document(Options(), Host(), board));
  REQUIRE(own.points.size() == 1);
  CHECK(own.points[0].operation == "all_reduce");
  CHECK(own.points[0].microseconds == 2);
  CHECK(own.points[0].in_place);

  const harness::PeerResults peers = harness::peers_of(R"({"format": "meshwise-peers 1", "points": [
    {"operation": "all_reduce_in_place", "ranks": 4, "bytes": 8, "peer": "openmpi", "peer_us": 1.5, "us": 1},
    {"operation": "exchange", "ranks": 2, "bytes": 8, "peer": "mpich", "peer_us": 0.5},
    {"operation": "all_reduce", "ranks": 4, "bytes": 8, "buffers": "foreign", "peer": "ucc", "peer_us": 1.5},
    {"operation": "barrier", "ranks": 4, "bytes": 0, "peer": "", "peer_us": 0}]})");
  REQUIRE(peers.points.size() == 2);
  CHECK(peers.points[0].operation == "all_reduce");
  CHECK(peers.points[0].in_place);
  CHECK(peers.points[0].detail == "openmpi");
  CHECK(peers.points[1].operation == "send_recv");
}

TEST_CASE("what is no document is refused") {
  for (const char* text :
       {"", "{", "[1,", "{\"a\" 1}", "{\"a\": tru}", "\"\\u12\"", "\"open", "{} x", "[1] 2", "nul", "+"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_json(text), std::runtime_error);
  }
  CHECK_THROWS_AS(read_json(std::string(100'000, '[')), std::runtime_error);
  CHECK_THROWS_AS(harness::peers_of("{\"points\": []}"), std::runtime_error);
  CHECK_THROWS_AS(harness::read_peers("/nowhere/at/all.json"), harness::BadOption);
  CHECK(harness::peers_of("{\"format\": \"meshwise-peers 1\", \"points\": 3}").points.empty());
}

}  // namespace
