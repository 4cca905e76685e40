// SPDX-License-Identifier: Apache-2.0
// What gradient buckets and the prefetch of ZeRO-3 hide of a network that is as slow as the computing, on two ranks with
// a core each: in virtual time, and by the clock. See ./run overlap --help.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../tests/parallel/overlap_support.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "meshwise/trace/write_trace.hpp"

namespace {

using namespace overlapping;

constexpr const char* usage =
    "usage: overlap [--trace FILE]\n"
    "  --trace FILE  also writes what the last run of stage 3 did when, for https://ui.perfetto.dev\n"
    "\n"
    "Columns, of the rank that hides least: seconds x 1000 of computing; of waiting without overlap and with it; what\n"
    "could be hidden, the lesser of waiting and of the computing that is left after the first operation can start; "
    "the\n"
    "part of it that is hidden. Fails below 70 %. By the clock it needs a machine that does nothing else: the median "
    "of\n"
    "5 pairs of runs.\n";

struct Result {
  Overlap off, on;
  double left = 0;

  double part() const { return hidden_part(off, on, left); }
};

/// Keeps a rank on a core of its own, if there are enough.
void keep_core(int rank, int ranks) {
  cpu_set_t usable, one;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < ranks) return;
  int core = 0;
  for (int before = 0;; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &usable) && before++ == rank) break;
  }
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// Both runs of a step, of the rank that hides least.
Result measure(TimedStep step, const TimedModel& model, double left, bool by_clock, const std::string& trace) {
  constexpr int ranks = 2;
  std::vector<Result> all(ranks);
  for (const bool overlaps : {false, true}) {
    meshwise::launch(ranks, [&](Communicator& world) {
      if (by_clock) keep_core(world.rank(), ranks);
      Result& own = all[static_cast<std::size_t>(world.rank())];
      VirtualClock clock;
      Timeline timeline = by_clock ? Timeline() : Timeline(clock);
      Communicator after = world.split(0);
      record_step(std::move(world), step, model, overlaps, timeline, by_clock ? nullptr : &clock);
      (overlaps ? own.on : own.off) = overlap(timeline);
      own.left = left;
      if (overlaps && !trace.empty()) write_trace(after, timeline, trace);
    });
  }
  return *std::min_element(all.begin(), all.end(),
                           [](const Result& a, const Result& b) { return a.part() < b.part(); });
}

bool print(const char* name, const Result& r) {
  const bool good = r.part() >= 0.7;
  std::printf("%-34s %8.2f %8.2f %8.2f %8.2f %7.1f %%  %s\n", name, r.on.compute * 1e3, r.off.exposed * 1e3,
              r.on.exposed * 1e3, hideable(r.off, r.left) * 1e3, 100 * r.part(), good ? "good" : "LESS THAN 70 %");
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  std::string trace;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--help") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (argument != "--trace" || i + 1 == count) {
      std::fprintf(stderr, "overlap: %s; see --help\n",
                   argument == "--trace" ? "--trace needs a file" : ("unknown option " + argument).c_str());
      return 2;
    }
    trace = arguments[++i];
  }
  TimedModel model;
  model.forward = 2e-3, model.transfer = 1.5e-3;
  const double buckets_left = 2 * model.forward * (model.layers - 1);
  std::printf("%-34s %8s %8s %8s %8s %9s\n", "ms per step", "compute", "waits", "overlaps", "hideable", "hidden");
  bool good = true;
  good = print("buckets, virtual time", measure(step_with_buckets, model, buckets_left, false, "")) && good;
  good = print("ZeRO-3 prefetch, virtual time", measure(step_of_zero3, model, model.compute(), false, "")) && good;
  for (const bool zero : {false, true}) {
    std::vector<Result> runs;
    for (int k = 0; k < 5; ++k) {
      runs.push_back(measure(zero ? step_of_zero3 : step_with_buckets, model, zero ? model.compute() : buckets_left,
                             true, zero ? trace : ""));
    }
    std::sort(runs.begin(), runs.end(), [](const Result& a, const Result& b) { return a.part() < b.part(); });
    good = print(zero ? "ZeRO-3 prefetch, by the clock" : "buckets, by the clock", runs[runs.size() / 2]) && good;
  }
  return good ? 0 : 1;
}
