// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/segments.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

std::string refusal(int ranks, std::uint64_t arena_bytes, Code code) {
  try {
    Segments::create(ranks, arena_bytes);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "none";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the segments of a job: control is complete and cannot change its size, arenas are empty") {
  const auto files = test::names_in("/proc/self/fd"), shared = test::names_in("/dev/shm");
  for (const int ranks : {1, 3, 256}) {
    Segments segments = Segments::create(ranks);
    CHECK(segments.ranks() == ranks);
    Control& control = segments.header();
    CHECK(control.magic == Control::right_magic);
    CHECK(control.ranks == ranks);
    CHECK(control.arena_bytes == largest_arena);
    CHECK(control.failed.load() == 0);
    struct stat file {};
    REQUIRE(fstat(segments.control(), &file) == 0);
    CHECK(static_cast<std::size_t>(file.st_size) >= Control::bytes(ranks));
    CHECK(file.st_blocks * 512 >= file.st_size);
    CHECK(ftruncate(segments.control(), 0) == -1);
    CHECK(ftruncate(segments.control(), file.st_size + 1) == -1);
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(control.record(rank).state.load() == RankRecord::expected);
      REQUIRE(fstat(segments.arena(rank), &file) == 0);
      CHECK(file.st_size == 0);
      CHECK((fcntl(segments.arena(rank), F_GETFD) & FD_CLOEXEC) != 0);
      segments.ended(rank, 256 * rank);
      CHECK(control.record(rank).ended.load() == 1);
      CHECK(control.record(rank).status.load() == 256 * rank);
    }
    Segments moved = std::move(segments);
    CHECK(moved.header().ranks == ranks);
    Segments::Descriptors all = moved.release();
    CHECK(all.arenas.size() == static_cast<std::size_t>(ranks));
    CHECK(fcntl(all.control, F_GETFD) != -1);
    close(all.control);
    for (const int one : all.arenas) CHECK(close(one) == 0);
  }
  CHECK(test::names_in("/proc/self/fd") == files);
  CHECK(test::names_in("/dev/shm") == shared);
}

TEST_CASE("segments that cannot be are refused with what can be") {
  for (const int ranks : {-1, 0, 257, 1 << 30}) {
    const std::string text = refusal(ranks, 0, Code::invalid_argument);
    CHECK(contains(text, "1 to 256 ranks"));
    CHECK(contains(text, std::to_string(ranks).c_str()));
  }
  CHECK(contains(refusal(2, largest_arena + 1, Code::invalid_argument), "1099511627777"));
  CHECK(Segments::create(2, 1).header().arena_bytes == arena_granule);
  CHECK(Segments::create(2, largest_arena).header().arena_bytes == largest_arena);
}

TEST_CASE("a starter without descriptors or memory says what is lacking") {
  test::Children child(2, [](int k, const test::Line&) -> std::string {
    const auto kind = k == 0 ? RLIMIT_NOFILE : RLIMIT_FSIZE;
    rlimit limit{};
    getrlimit(kind, &limit);
    limit.rlim_cur = k == 0 ? 20 : 1000;
    setrlimit(kind, &limit);
    const auto before = test::names_in("/proc/self/fd");
    try {
      Segments::create(64);
    } catch (const Error& error) {
      if (test::names_in("/proc/self/fd") != before) return "descriptors are left";
      return code_name(error.code()) + std::string(" ") + error.what();
    }
    return "none";
  });
  const std::string descriptors = child.hear(0), memory = child.hear(1);
  CHECK(contains(descriptors, "out_of_memory starting the job: 64 ranks"));
  CHECK(contains(descriptors, "65 are needed and 20 descriptors are permitted"));
  CHECK(contains(descriptors, "ulimit -n"));
  CHECK(contains(memory, "out_of_memory starting the job: 64 ranks"));
  CHECK(contains(memory, "ulimit -f"));
  CHECK(child.reap(1) == 0);
}
