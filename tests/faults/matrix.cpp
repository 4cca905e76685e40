// SPDX-License-Identifier: Apache-2.0
// Every rank is killed, exits, throws and is stopped at every point of every algorithm: the others get an error in time
// that names it, and nothing is left behind. MESHWISE_FULL=1: all for 2 to 4 ranks, and more of 5 to 8; else a sample.
// MESHWISE_VERBOSE lists every scenario; MESHWISE_PART=2/3 plays the second third of the targets, so that several run at
// once; MESHWISE_TARGET="reduce ring messages" those whose text begins so.
#include <dirent.h>
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "../support/sanitized.hpp"
#include "meshwise/core/detail/mix.hpp"
#include "scenario.hpp"

namespace {

using namespace faults;

/// What is in a folder; with a name: only entries that have it in theirs, where others put things too.
std::set<std::string> entries(const char* folder, const char* name = "") {
  std::set<std::string> result;
  if (DIR* const open = opendir(folder)) {
    while (const dirent* const one = readdir(open)) {
      if (std::string_view(one->d_name).find(name) != std::string_view::npos) result.insert(one->d_name);
    }
    closedir(open);
  }
  return result;
}

struct Surroundings {
  std::set<std::string> shared = entries("/dev/shm");
  std::set<std::string> temporary = entries("/tmp", "meshwise");
  std::size_t descriptors = entries("/proc/self/fd").size();
  bool childless = waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
};

bool wants_all() {
  const char* const full = std::getenv("MESHWISE_FULL");
  return full != nullptr && std::string_view(full) == "1";
}

/// Whether the next target is among the ones that are asked for.
bool in_part(const Target& target) {
  static int targets = 0, part = 1, parts = 1;
  const char* const text = std::getenv("MESHWISE_PART");
  if (targets == 0 && text != nullptr) REQUIRE(std::sscanf(text, "%d/%d", &part, &parts) == 2);
  const char* const only = std::getenv("MESHWISE_TARGET");
  return targets++ % parts == part - 1 && (only == nullptr || target.text().rfind(only, 0) == 0);
}

/// One of `one_in` scenarios, always the same ones.
bool chosen(const Scenario& scenario, std::uint64_t one_in) {
  std::uint64_t hash = 0;
  for (const char c : scenario.text()) hash = meshwise::detail::mix(hash, static_cast<unsigned char>(c));
  return hash % one_in == 0;
}

struct Count {
  std::size_t scenarios = 0;
  std::size_t unreached = 0;
  std::size_t late = 0;  ///< at the first try
};

void play_checked(const Scenario& scenario, Count& count) {
  static const bool verbose = std::getenv("MESHWISE_VERBOSE") != nullptr;
  // A machine that is busy with something else may make anybody late: what is wrong is late again and again.
  constexpr int tries = 4;
  std::string fault;
  bool reached = false;
  for (int k = 0; k < tries; ++k) {
    bool met = false, late = false;
    int points = 0;
    fault = play(scenario, met, points, late);
    reached = met;
    if (!met) fault = "the point was not reached; " + fault;  // perhaps since the ranks did not find together in time
    if (met && !late) break;
    if (k == 0) ++count.late;
  }
  if (!reached) ++count.unreached;
  ++count.scenarios;
  if (verbose) std::printf("%s\n", scenario.text().c_str());
  if (!fault.empty()) FAIL_CHECK(scenario.text() << ": " << fault);
}

/// All scenarios of a target, as often as one in so many.
void play_target(const Target& target, std::uint64_t one_in, Count& count) {
  for (int victim = 0; victim < target.ranks; ++victim) {
    Scenario scenario{target, victim, Fate::none, 0};
    // How many points there are is only known from a run; where a schedule says it, it must agree.
    bool any = one_in == 1;
    for (const Fate fate : {Fate::killed, Fate::exits, Fate::throws, Fate::stopped}) {
      for (int point = 0; point < 40 && !any; ++point) any = chosen({target, victim, fate, point}, one_in);
    }
    if (!any) continue;
    bool met = false, late = false;
    int points = 0;
    const std::string trouble = play(scenario, met, points, late);
    if (!trouble.empty()) FAIL_CHECK(scenario.text() << ": " << trouble);
    if (target.way == Way::memory) {
      const int steps = steps_of(target, victim);
      CHECK_MESSAGE(points == 2 + (steps > 0 ? steps : 1), target.text() << ", rank " << victim);
    }
    CHECK_MESSAGE(points >= 2, target.text());
    for (const Fate fate : {Fate::killed, Fate::exits, Fate::throws, Fate::stopped}) {
      for (int point = 0; point < points; ++point) {
        scenario.fate = fate;
        scenario.point = point;
        // A stopped rank costs the whole deadline.
        const std::uint64_t rarer = fate == Fate::stopped && one_in > 1 ? 4 : 1;
        if (chosen(scenario, one_in * rarer)) play_checked(scenario, count);
      }
    }
  }
}

}  // namespace

TEST_CASE("whatever ends or stops a rank, wherever it is: the others hear of it in time, and nothing is left behind") {
  const Surroundings before;
  Count count;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const bool few = ranks <= 4;
    const std::uint64_t sample = wants_all() ? (few ? 1U : 40U) : (few ? 48U : 600U);
    const std::uint64_t one_in = sample * (building::sanitized ? 10U : 1U);
    for (const Target& target : targets(ranks)) {
      if (in_part(target)) play_target(target, one_in, count);
    }
  }
  const Surroundings after;
  CHECK(after.shared == before.shared);
  CHECK(after.temporary == before.temporary);
  CHECK(after.descriptors == before.descriptors);
  CHECK(before.childless);
  CHECK(after.childless);
  CHECK(count.scenarios > 0);
  CHECK(count.unreached == 0);
  MESSAGE(count.scenarios << " scenarios, " << count.late << " of them late at the first try");
}
