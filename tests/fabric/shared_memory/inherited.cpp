// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/inherited.hpp"

#include <doctest/doctest.h>

#include <string>

#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what was inherited as it should be is believed, and is closed at the end") {
  const auto files = test::names_in("/proc/self/fd");
  for (const int ranks : {1, 3, 256}) {
    const Segments::Descriptors all = Segments::create(ranks, 5 * arena_granule).release();
    const Inherited inherited(ranks - 1, ranks, all.control, all.arenas);
    CHECK(inherited.control.get() == all.control);
    for (std::size_t k = 0; k < all.arenas.size(); ++k) CHECK(inherited.arenas[k].get() == all.arenas[k]);
    CHECK(inherited.arena_bytes == 5 * arena_granule);
    CHECK(static_cast<const Control*>(inherited.map.begin())->ranks == ranks);
  }
  CHECK(test::names_in("/proc/self/fd") == files);
}

TEST_CASE("whatever else the descriptors are is refused before anything is believed") {
  const auto files = test::names_in("/proc/self/fd");
  struct Case {
    const char* expected;
    void (*spoil)(Segments&, Segments::Descriptors&, int& rank, int& ranks);
  };
  const Case cases[] = {
      {"1 to 256 ranks", [](Segments&, auto&, int&, int& ranks) { ranks = 0; }},
      {"1 to 256 ranks", [](Segments&, auto&, int&, int& ranks) { ranks = 257; }},
      {"a rank from 0 to 2, found -1", [](Segments&, auto&, int& rank, int&) { rank = -1; }},
      {"a rank from 0 to 2, found 3", [](Segments&, auto&, int& rank, int&) { rank = 3; }},
      {"2 arenas, one for each rank, found 3", [](Segments&, auto&, int&, int& ranks) { ranks = 2; }},
      {"3 arenas, one for each rank, found 2",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas.back());
         all.arenas.pop_back();
       }},
      {"begins with \"meshwise\"", [](Segments& s, auto&, int&, int&) { s.header().magic ^= 1; }},
      {"same meshwise as this program has: ",
       [](Segments& s, auto&, int&, int&) { s.header().version ^= 2; }},
      {"found 12.34.5 (layout 0000abcd); build the program, and what starts it (meshwise-run), with the same headers",
       [](Segments& s, auto&, int&, int&) {
         s.header().version = 0xabcd;
         s.header().library = 12'034'005;
       }},
      {"for 3 ranks, found one for 4", [](Segments& s, auto&, int&, int&) { s.header().ranks = 4; }},
      {"for 3 ranks, found one for -7", [](Segments& s, auto&, int&, int&) { s.header().ranks = -7; }},
      {"arenas of whole 2 MiB", [](Segments& s, auto&, int&, int&) { s.header().arena_bytes = 0; }},
      {"arenas of whole 2 MiB", [](Segments& s, auto&, int&, int&) { s.header().arena_bytes += arena_granule; }},
      {"arenas of whole 2 MiB", [](Segments& s, auto&, int&, int&) { s.header().arena_bytes = arena_granule + 1; }},
      {"the control segment to be open, found descriptor",
       [](Segments&, auto& all, int&, int&) { close(all.control); }},
      {"the control segment to be open, found descriptor -5",
       [](Segments&, auto& all, int&, int&) {
         close(all.control);
         all.control = -5;
       }},
      {"above the standard descriptors, found descriptor 1",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[1]);
         all.arenas[1] = 1;
       }},
      {"begins with \"meshwise\", found nothing there",
       [](Segments&, auto& all, int&, int&) {
         close(all.control);
         all.control = memory_file("short").release();
       }},
      {"begins with \"meshwise\", found other bytes there",
       [](Segments&, auto& all, int&, int&) {
         close(all.control);
         all.control = memory_file("long").release();
         REQUIRE(ftruncate(all.control, 1 << 20) == 0);
       }},
      {"a control segment that begins",
       [](Segments&, auto& all, int&, int&) {
         close(all.control);
         all.control = memory_file("empty").release();
         REQUIRE(ftruncate(all.control, static_cast<off_t>(Control::bytes(3))) == 0);
       }},
      {"the control segment to be a file in memory, found descriptor",
       [](Segments&, auto& all, int&, int&) {
         int ends[2];
         REQUIRE(pipe(ends) == 0);
         close(ends[1]);
         close(all.control);
         all.control = ends[0];
       }},
      {"a device",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[2]);
         all.arenas[2] = open("/dev/null", O_RDWR);
       }},
      {"a folder",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[2]);
         all.arenas[2] = open("/", O_RDONLY);
       }},
      {"the arena of rank 1 open for reading and writing",
       [](Segments&, auto& all, int&, int&) {
         const std::string path = "/proc/self/fd/" + std::to_string(all.arenas[1]);
         const int weak = open(path.c_str(), O_RDONLY);
         close(all.arenas[1]);
         all.arenas[1] = weak;
       }},
      {"the same file as control",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[0]);
         all.arenas[0] = dup(all.control);
       }},
      {"the same file as the arena of rank 0",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[2]);
         all.arenas[2] = dup(all.arenas[0]);
       }},
      {"the same file as the arena of rank 0",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[2]);
         all.arenas[2] = all.arenas[0];
       }},
      {"the same file as control",
       [](Segments&, auto& all, int&, int&) {
         close(all.arenas[0]);
         all.arenas[0] = all.control;
       }},
      {" bytes in whole pages",
       [](Segments& s, auto& all, int&, int&) {
         close(all.control);
         all.control = memory_file("too long").release();
         REQUIRE(pwrite(all.control, &s.header(), 64, 0) == 64);
         REQUIRE(ftruncate(all.control, 1 << 20) == 0);
       }},
      {" bytes in whole pages",
       [](Segments& s, auto& all, int&, int&) {
         close(all.control);
         all.control = memory_file("too short").release();
         REQUIRE(pwrite(all.control, &s.header(), 64, 0) == 64);
       }},
      {"the arena of rank 1 of at most 1099511627776 bytes",
       [](Segments&, auto& all, int&, int&) {
         REQUIRE(ftruncate(all.arenas[1], static_cast<off_t>(largest_arena + 1)) == 0);
       }},
  };
  for (const Case& one : cases) {
    Segments segments = Segments::create(3);
    Segments::Descriptors all{dup(segments.control()), {}};
    for (int k = 0; k < 3; ++k) all.arenas.push_back(dup(segments.arena(k)));
    int rank = 1, ranks = 3;
    one.spoil(segments, all, rank, ranks);
    Code code{};
    std::string text = "believed";
    try {
      const Inherited inherited(rank, ranks, all.control, all.arenas);
    } catch (const Error& error) {
      code = error.code();
      text = error.what();
    }
    CHECK_MESSAGE(contains(text, one.expected), text);
    CHECK(contains(text, "joining the job"));
    CHECK(code == Code::invalid_argument);
    // Nothing was written to what could not be believed.
    CHECK(segments.header().record(1).state.load() == RankRecord::expected);
    CHECK(segments.header().failed.load() == 0);
  }
  CHECK(test::names_in("/proc/self/fd") == files);
}
