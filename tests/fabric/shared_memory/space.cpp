// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/space.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "meshwise/fabric/shared_memory/address_map.hpp"
#include "ranks.hpp"

namespace {

using namespace meshwise;
using namespace meshwise::detail;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

int lowest(std::uint64_t places) { return __builtin_ctzll(places); }

/// What joining says in this process, which stays outside.
std::string refusal(int rank, int ranks, const Segments::Descriptors& all, Code* code = nullptr) {
  try {
    const Space space(rank, ranks, all.control, all.arenas, 0.2);
    return "joined";
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
}

/// Answers questions until it is told to leave.
std::string answer(Space& space, const test::Line& line) {
  for (;;) {
    const std::string word = line.hear();
    if (word.rfind("dead ", 0) == 0) {
      line.say(space.dead(std::atoi(word.c_str() + 5)) ? "yes" : "no");
    } else {
      return word;
    }
  }
}

}  // namespace

TEST_CASE("processes see each other's bytes at equal addresses, and leave nothing") {
  const auto files = test::names_in("/proc/self/fd"), shared = test::names_in("/dev/shm");
  for (const int ranks : {1, 2, 4, 9}) {
    Segments segments = Segments::create(ranks);
    test::Ranks children(segments, [](Space& space, const test::Line& line) -> std::string {
      auto* const own = static_cast<char*>(space.arena().allocate(100, 64));
      std::snprintf(own, 100, "from %d", space.rank());
      line.say(std::to_string(reinterpret_cast<std::uintptr_t>(own)));
      std::string seen;
      for (int k = 0; k < space.ranks(); ++k) {
        const auto* const theirs = reinterpret_cast<const char*>(number(line.hear()));
        if (!space.addressable(theirs, 100)) return "not addressable";
        seen += std::string(theirs) + ";";
      }
      line.say(seen);
      return line.hear();
    });
    std::vector<std::string> addresses;
    std::string all;
    for (int k = 0; k < ranks; ++k) {
      addresses.push_back(children.hear(k));
      all += "from " + std::to_string(k) + ";";
    }
    for (int k = 0; k < ranks; ++k) {
      for (const auto& one : addresses) children.say(k, one);
    }
    for (int k = 0; k < ranks; ++k) CHECK(children.hear(k) == all);
    for (int k = 0; k < ranks; ++k) {
      CHECK(segments.header().record(k).state.load() == RankRecord::mapped);
      CHECK(segments.header().record(k).pid.load() == children.pid(k));
      CHECK(LifeLock::held(segments.control(), k));
      children.say(k, "bye");
      CHECK(children.hear(k) == "bye");
      CHECK(children.reap(k) == 0);
      CHECK(segments.header().record(k).state.load() == RankRecord::left);
      CHECK_FALSE(LifeLock::held(segments.control(), k));
    }
  }
  CHECK(test::names_in("/proc/self/fd") == files);
  CHECK(test::names_in("/dev/shm") == shared);
}

TEST_CASE("what a space says of itself") {
  const auto files = test::names_in("/proc/self/fd");
  {
    const Segments::Descriptors all = Segments::create(1).release();
    Space space(0, 1, all.control, all.arenas, 5);
    CHECK(space.rank() == 0);
    CHECK(space.ranks() == 1);
    CHECK(space.place() == lowest(free_places(1, largest_arena) | std::uint64_t{1} << space.place()));
    CHECK(reinterpret_cast<std::uintptr_t>(space.base()) == address_places[space.place()].base);
    CHECK(space.arena_bytes() == address_places[space.place()].arena(1, largest_arena));
    CHECK(space.addressable(space.base(), space.arena_bytes()));
    CHECK(space.addressable(space.base() + 5, 0));
    CHECK_FALSE(space.addressable(space.base() + 1, space.arena_bytes()));
    CHECK_FALSE(space.addressable(space.base() - 1, 1));
    CHECK_FALSE(space.addressable(space.base() + space.arena_bytes(), 0));
    CHECK_FALSE(space.addressable(space.base() + 1, ~std::size_t{0}));
    CHECK_FALSE(space.addressable(nullptr, 1));
    CHECK_FALSE(space.addressable(&space, sizeof(space)));
    CHECK_FALSE(space.dead(0));
    CHECK(space.cores() >= 1);
    CHECK_FALSE(space.crowded());
    CHECK((fcntl(space.control_descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(space.arena().descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(space.arena().allocate(100, 64) == space.base() + 64);  // behind the stamp
  }
  CHECK(test::names_in("/proc/self/fd") == files);
}

TEST_CASE("ranks keep the descriptors of control and of their own arena only") {
  Segments segments = Segments::create(4);
  const auto before = test::names_in("/proc/self/fd").size();
  test::Ranks children(
      segments, [](Space&, const test::Line&) { return std::to_string(test::names_in("/proc/self/fd").size()); });
  // Besides the line to the test.
  for (int k = 0; k < 4; ++k) CHECK(children.hear(k) == std::to_string(before - 3 + 1));
}

TEST_CASE("a rank that is killed is dead, one that is stopped or has left is not") {
  Segments segments = Segments::create(4);
  test::Ranks children(segments, answer);
  const auto ask = [&](int whom, int about) {
    children.say(whom, "dead " + std::to_string(about));
    return children.hear(whom);
  };
  for (int k = 0; k < 4; ++k) CHECK(ask(k, (k + 1) % 4) == "no");

  children.send_signal(1, SIGSTOP);
  int status = 0;
  REQUIRE(waitpid(children.pid(1), &status, WUNTRACED) == children.pid(1));
  CHECK(ask(0, 1) == "no");
  children.send_signal(1, SIGCONT);
  CHECK(ask(0, 1) == "no");
  CHECK(ask(1, 0) == "no");

  children.send_signal(1, SIGKILL);
  // Noticed without anybody having waited for it: the test reaps it later.
  for (int tries = 0; tries < 2000 && ask(0, 1) == "no"; ++tries) usleep(1000);
  CHECK(ask(0, 1) == "yes");
  CHECK(ask(2, 1) == "yes");
  segments.ended(1, children.reap(1));

  children.say(3, "bye");
  CHECK(children.hear(3) == "bye");
  segments.ended(3, children.reap(3));
  CHECK(ask(0, 3) == "no");
  CHECK(ask(0, 1) == "yes");
}

TEST_CASE("a rank that has reported a failure does not leave in peace") {
  Segments segments = Segments::create(2);
  test::Ranks children(segments, [](Space& space, const test::Line& line) -> std::string {
    if (space.rank() == 0) return answer(space, line);
    space.control().record(1).reported.store(1);
    return "reported";
  });
  CHECK(children.hear(1) == "reported");
  children.reap(1);
  children.say(0, "dead 1");
  CHECK(children.hear(0) == "yes");
}

TEST_CASE("a forked child of a rank has neither its memory nor its lock, and does no harm at its end") {
  Segments segments = Segments::create(2);
  test::Children children(2, [&](int rank, const test::Line& line) -> std::string {
    const Segments::Descriptors all = segments.release();
    auto space = std::make_unique<Space>(rank, 2, all.control, all.arenas, 20);
    if (rank == 0) {
      const std::uint64_t base = reinterpret_cast<std::uintptr_t>(space->base()), bytes = 2 * space->arena_bytes();
      const pid_t child = fork();
      if (child == 0) {
        const bool without = addresses_free(base, bytes);
        space.reset();
        _exit(without ? 0 : 1);
      }
      int status = -1;
      while (waitpid(child, &status, 0) < 0) {}
      if (status != 0) return "the child has it: " + std::to_string(status);
      *space->base() = *space->base();
      line.say("done");
    }
    return answer(*space, line);
  });
  CHECK(children.hear(0) == "done");
  children.say(1, "dead 0");
  CHECK(children.hear(1) == "no");
  children.say(0, "dead 1");
  CHECK(children.hear(0) == "no");
}

TEST_CASE("cores are those that any of the ranks may run on") {
  Segments segments = Segments::create(3);
  const ProcessorSet permitted = ProcessorSet::permitted();
  std::vector<std::size_t> numbers;
  for (std::size_t k = 0; k < 1024; ++k) {
    if ((permitted.word[k / 64] >> k % 64 & 1) != 0) numbers.push_back(k);
  }
  const std::uint32_t quota = processor_quota();
  for (const std::size_t width : {std::size_t{1}, numbers.size()}) {
    Segments fresh = Segments::create(3);
    test::Children children(3, [&](int rank, const test::Line&) -> std::string {
      cpu_set_t mask;
      CPU_ZERO(&mask);
      CPU_SET(numbers[static_cast<std::size_t>(rank) % width], &mask);
      sched_setaffinity(0, sizeof(mask), &mask);
      const Segments::Descriptors all = fresh.release();
      const Space space(rank, 3, all.control, all.arenas, 20);
      return std::to_string(space.cores()) + (space.crowded() ? " crowded" : "");
    });
    std::size_t cores = width < 3 ? width : 3;
    if (quota != 0 && quota < cores) cores = quota;
    for (int k = 0; k < 3; ++k) CHECK(children.hear(k) == std::to_string(cores) + (cores < 3 ? " crowded" : ""));
  }
}

TEST_CASE("a place that is taken in one rank is avoided by all, and if all are taken all say so") {
  const std::uint64_t free = free_places(3, largest_arena);
  REQUIRE((free & (free - 1)) != 0);
  // The best one is taken in rank 1; all are; all are, but not in one rank.
  for (const int variant : {0, 1, 2}) {
    Segments segments = Segments::create(3);
    test::Children children(3, [&](int rank, const test::Line&) -> std::string {
      for (int k = 0; k < address_place_count; ++k) {
        if ((free >> k & 1) == 0 || (variant == 0 && k != lowest(free))) continue;
        if (rank != (variant == 2 && k == lowest(free) ? 2 : 1)) continue;
        mmap(reinterpret_cast<void*>(address_places[k].base + arena_granule), 4096, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      }
      const Segments::Descriptors all = segments.release();
      const Space space(rank, 3, all.control, all.arenas, 20);
      return std::to_string(space.place());
    });
    for (int k = 0; k < 3; ++k) {
      const std::string said = children.hear(k);
      if (variant == 0) {
        CHECK(said == std::to_string(lowest(free & (free - 1))));
      } else {
        CHECK_MESSAGE(contains(said, "free in all 3 ranks"), said);
        CHECK_MESSAGE(contains(said, variant == 1 ? "nothing free in rank 1 at the 7 places" : " in rank 2, "), said);
      }
    }
  }
}

TEST_CASE("one process in two jobs: they lie at different places") {
  const Segments::Descriptors a = Segments::create(1).release(), b = Segments::create(1).release();
  Space first(0, 1, a.control, a.arenas, 5);
  const Space second(0, 1, b.control, b.arenas, 5);
  CHECK(first.place() != second.place());
  CHECK_FALSE(second.addressable(first.base(), 1));
}

TEST_CASE("a rank that does not come is named at the deadline") {
  for (const int ranks : {2, 20}) {
    Segments segments = Segments::create(ranks);
    Code code{};
    const Segments::Descriptors all = segments.release();
    const std::string text = refusal(0, ranks, all, &code);
    CHECK(code == Code::timed_out);
    CHECK_MESSAGE(contains(text, "(rank 0): expected all " + std::to_string(ranks) + " ranks to come within 0.2 s"),
                  text);
    CHECK_MESSAGE(contains(text, ranks == 2 ? "no sign of rank 1;" : "ranks 1, 2, 3,"), text);
    if (ranks == 20) CHECK(contains(text, " and 3 more"));
  }
}

TEST_CASE("a rank that has ended before it came, or while it came, ends the wait at once") {
  for (const bool locked : {false, true}) {
    Segments segments = Segments::create(3);
    test::Children children(3, [&](int rank, const test::Line& line) -> std::string {
      if (rank == 1 && locked) {
        LifeLock::take(segments.control(), 1);
        segments.header().record(1).places.store(~std::uint64_t{0});
        segments.header().record(1).state.store(RankRecord::locked);
      }
      if (rank == 1) {
        line.hear();
        _exit(3);
      }
      const Segments::Descriptors all = segments.release();
      const Space space(rank, 3, all.control, all.arenas, 0);
      return "joined";
    });
    children.say(1, "end");
    const int status = children.reap(1);
    if (!locked) segments.ended(1, status);
    // One of the others has found it out; the third hears of it from there or finds it out too.
    for (const int k : {0, 2}) {
      const std::string text = children.hear(k);
      CHECK_MESSAGE(
          contains(text, locked ? "rank 1, which has ended before" : "rank 1, which exited with code 3 before"), text);
    }
    CHECK(segments.header().failed.load() != 0);
    for (const int k : {0, 2}) CHECK(segments.header().record(k).state.load() == RankRecord::refused);
  }
}

TEST_CASE("whenever a rank is killed while ranks join, the others join or hear of it") {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    Segments segments = Segments::create(3);
    test::Ranks children(segments, answer, 0);
    usleep(static_cast<useconds_t>(random() % 1500));
    children.send_signal(1, SIGKILL);
    const int status = children.reap(1);
    segments.ended(1, status);
    for (const int k : {0, 2}) {
      children.say(k, "dead 1");
      const std::string text = children.hear(k);
      CHECK_MESSAGE((text == "yes" || contains(text, "rank 1")), text);
    }
  }
}

TEST_CASE("how ranks ended is told as the starter knows it") {
  Segments segments = Segments::create(1);
  const Segments::Descriptors all{dup(segments.control()), {dup(segments.arena(0))}};
  const Space space(0, 1, all.control, all.arenas, 5);
  CHECK(space.how_it_ended(0) == "has ended");
  segments.ended(0, 9);
  CHECK(space.how_it_ended(0) == "was killed by signal 9");
  segments.ended(0, 3 << 8);
  CHECK(space.how_it_ended(0) == "exited with code 3");
}

TEST_CASE("what one rank reports before all have come stops the others with its words") {
  Segments segments = Segments::create(3);
  Report report;
  report.operation = "main";
  report.found = "no such file";
  RankRecord& record = segments.header().record(2);
  record.report.pack(report);
  record.reported.store(1);
  segments.header().failed.store(3);
  Code code{};
  const std::string text = refusal(0, 3, segments.release(), &code);
  CHECK(code == Code::aborted);
  CHECK_MESSAGE(contains(text, "rank 2 failed: main: no such file"), text);
}

TEST_CASE("a rank is one process") {
  Segments segments = Segments::create(1);
  test::Children child(1, [&](int, const test::Line& line) -> std::string {
    const Segments::Descriptors all = segments.release();
    const Space space(0, 1, all.control, all.arenas, 20);
    line.say("joined");
    return line.hear();
  });
  REQUIRE(child.hear(0) == "joined");
  const std::string pid = std::to_string(child.pid(0));
  const auto copies = [&] { return Segments::Descriptors{dup(segments.control()), {dup(segments.arena(0))}}; };
  std::string text = refusal(0, 1, copies());
  CHECK_MESSAGE(contains(text, "another process (pid " + pid + ") that is it already"), text);
  child.say(0, "bye");
  child.reap(0);
  text = refusal(0, 1, copies());
  CHECK_MESSAGE(contains(text, "another process (pid " + pid + ") that has been it before"), text);
}

TEST_CASE("arenas in another order in one rank are found out, by all, before anybody touches them") {
  Segments segments = Segments::create(3);
  test::Children children(3, [&](int rank, const test::Line&) -> std::string {
    Segments::Descriptors all = segments.release();
    if (rank == 1) std::swap(all.arenas[0], all.arenas[1]);
    const Space space(rank, 3, all.control, all.arenas, 20);
    return "joined";
  });
  for (int k = 0; k < 3; ++k) {
    const std::string text = children.hear(k);
    CHECK(children.reap(k) == 0);
    if (k == 2 && text == "joined") continue;  // it saw nothing wrong and did not wait any more; `failed` tells it next
    CHECK_MESSAGE(contains(text, "as that rank has it, in its place"), text);
  }
  CHECK(segments.header().failed.load() != 0);
}

TEST_CASE("a rank whose first pages cannot be had says so, and stops the others") {
  Segments segments = Segments::create(2);
  test::Children children(2, [&](int rank, const test::Line&) -> std::string {
    if (rank == 1) {
      rlimit limit{1000, 1000};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    const Segments::Descriptors all = segments.release();
    const Space space(rank, 2, all.control, all.arenas, 20);
    return "joined";
  });
  for (int k = 0; k < 2; ++k) {
    const std::string text = children.hear(k);
    CHECK_MESSAGE(contains(text, "no memory for the first pages of its arena"), text);
    CHECK_MESSAGE(contains(text, "ulimit -f"), text);
  }
}

TEST_CASE("a core dump would hold what the own arena has in use, not the addresses of all") {
  const Segments::Descriptors all = Segments::create(1).release();
  Space space(0, 1, all.control, all.arenas, 5);
  constexpr std::size_t mib = std::size_t{1} << 20;
  std::uint64_t dumped = 0;
  const auto count = [&] {
    dumped = 0;
    const std::string text = system_text("/proc/self/smaps");
    std::uint64_t bytes = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t stop = text.find('\n', at);
      const std::string line = text.substr(at, stop - at);
      at = stop + 1;
      const auto ranges = address_ranges(line, 0, ~std::uint64_t{0});
      if (!ranges.empty()) {
        inside = space.addressable(reinterpret_cast<const void*>(ranges[0].begin), 1);
        bytes = ranges[0].end - ranges[0].begin;
      } else if (inside && line.rfind("VmFlags:", 0) == 0 && !contains(line, " dd")) {
        dumped += bytes;
      }
    }
  };
  void* const block = space.arena().allocate(5 * mib, 64);
  count();
  CHECK(dumped >= 5 * mib);
  CHECK(dumped < 8 * mib);
  space.arena().release(block, 5 * mib);
  count();
  CHECK(dumped < 3 * mib);
}
