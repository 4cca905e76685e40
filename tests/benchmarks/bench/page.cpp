// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/page.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "../../../benchmarks/bench/chart.hpp"

namespace {

using harness::Board;
using harness::Point;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Point point_of(harness::Verb verb, meshwise::Algorithm algorithm, std::uint64_t size) {
  Point point;
  point.verb = verb;
  point.algorithm = algorithm;
  point.ranks = 2;
  point.size = size;
  point.limit = 40e9;
  point.out_of_place.measured = true;
  point.out_of_place.time = point.out_of_place.median = 1 + static_cast<double>(size) * 1e-4;
  point.out_of_place.moved = harness::least_bytes(verb, static_cast<double>(size), 2, false);
  point.out_of_place.wrong = 0;
  return point;
}

TEST_CASE("a page has charts and a table for each operation, and needs nothing else") {
  Board board(16);
  for (const std::uint64_t size : {8UL, 1024UL, 1UL << 20}) {
    board.add(point_of(harness::Verb::all_reduce, meshwise::Algorithm::ring, size));
    board.add(point_of(harness::Verb::all_reduce, meshwise::Algorithm::two_shot, size));
  }
  board.add(point_of(harness::Verb::barrier, meshwise::Algorithm::automatic, 0));
  harness::PeerResults peers;
  peers.points.push_back({"best peer", "open<mpi>", "all_reduce", 2, 1024, 3.5, false});
  peers.points.push_back({"best peer", "elsewhere", "all_gather", 2, 1024, 3.5, false});
  const std::string page = harness::page(harness::Options(), harness::Host(), board, peers);
  CHECK(count_of(page, "role=\"img\"") == 2);  // a barrier has no sizes to draw it over
  CHECK(count_of(page, "<details") == 2);
  CHECK(count_of(page, "ring, out of place\n") == 6);
  CHECK(count_of(page, "open&lt;mpi&gt;") == 2);
  CHECK(count_of(page, "elsewhere") == 0);
  CHECK(count_of(page, "http") == 0);
  CHECK(count_of(page, "nan") == 0);
  CHECK(count_of(page, "inf\"") == 0);
  for (const char* tag : {"svg", "g", "ul", "li", "table", "tr", "details", "div", "title", "p", "h2"}) {
    CAPTURE(tag);
    const std::string name = tag;
    CHECK(count_of(page, "<" + name + ">") + count_of(page, "<" + name + " ") == count_of(page, "</" + name + ">"));
  }
}

TEST_CASE("charts of one point, of nothing, and of what cannot be drawn") {
  harness::Chart chart{"title", "unit", {}};
  CHECK(harness::to_svg(chart).empty());
  harness::Curve curve;
  curve.dots.push_back({0, 1, "no logarithm"});
  curve.dots.push_back({1, 0, "no logarithm"});
  curve.dots.push_back({1, std::nan(""), "no number"});
  chart.curves.push_back(curve);
  CHECK(harness::to_svg(chart).empty());
  chart.curves[0].dots.push_back({1024, 5, "<one>"});
  const std::string svg = harness::to_svg(chart);
  CHECK(count_of(svg, "<title>") == 1);
  CHECK(count_of(svg, "&lt;one&gt;") == 1);
  CHECK(count_of(svg, "nan") == 0);
}

}  // namespace
