// SPDX-License-Identifier: Apache-2.0
// Small collectives between threads: `OPERATION/thread/RANKS/BYTES`, BYTES of a rank's larger buffer. Reductions are of
// floats, the others of bytes.
//
// Time: of one blocking call, on the slowest rank, from batches of many. Counters: prepared = seconds of one run of the
// prepared operation; hand = of a loop written by hand (support/by_hand.hpp: one window per rank, whatever algorithm
// the library chooses); ratio and prepared_ratio = what the library takes / hand, the median over rounds in which each
// of the three goes first in turn; line_ns and the label: how far the first two cores are, see limits.hpp. Rooted
// operations do not wait for their readers: a row of them is a stream.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "support/by_hand.hpp"
#include "support/limits.hpp"
#include "support/team.hpp"

namespace {

using namespace meshwise;
using bench::ByHand;

constexpr int batch = 200;

/// One rank of a run.
struct Rank {
  benchmark::State& state;
  bench::Team& team;
  bench::RoundTrip& line;
  Communicator& world;
  ByHand& hand;
};

/// Times the three ways to do one operation against each other.
template <class Blocking, class Prepared, class Hand>
void compare(const Rank& rank, const Blocking& blocking, const Prepared& prepared, const Hand& by_hand) {
  bench::Team& team = rank.team;
  Communicator& world = rank.world;
  const double before = rank.line.nanoseconds(team, world);
  std::array<std::vector<double>, 3> times;
  for (int round = 0; team.next(world, batch); ++round) {
    for (int turn = 0; turn < 3; ++turn) {
      const int way = (round + turn) % 3;
      const double seconds = way == 0   ? team.time(world, batch, blocking)
                             : way == 1 ? team.time(world, batch, prepared)
                                        : team.time(world, batch, by_hand);
      times[static_cast<std::size_t>(way)].push_back(seconds / batch);
    }
    team.count(world, times[0].back() * batch);
  }
  const double after = rank.line.nanoseconds(team, world);
  if (world.rank() != 0) return;
  const auto ratio = [&](std::size_t way) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times[way].size(); ++i) ratios.push_back(times[way][i] / times[2][i]);
    return bench::median(ratios);
  };
  rank.state.counters["prepared"] = bench::median(times[1]);
  rank.state.counters["hand"] = bench::median(times[2]);
  rank.state.counters["ratio"] = ratio(0);
  rank.state.counters["prepared_ratio"] = ratio(1);
  rank.state.counters["line_ns"] = std::max(before, after);
  rank.state.SetLabel(bench::placement(before, after));
}

/// One call of each way, whose results must be equal, before anything is timed.
template <class T, class Blocking, class Prepared, class Hand>
void check(const Rank& rank, std::span<T> out, const Blocking& blocking, const Prepared& prepared,
           const Hand& by_hand) {
  std::vector<std::vector<T>> results;
  const auto keep = [&](const auto& run) {
    std::fill(out.begin(), out.end(), T{});
    run();
    results.emplace_back(out.begin(), out.end());
  };
  keep(by_hand);
  keep(blocking);
  keep(prepared);
  if (results[0] == results[1] && results[0] == results[2]) return;
  fail("benchmark", "equal results of the library and of the loop by hand", "different ones",
       "something is wrong, its speed does not matter", rank.world.rank());
}

/// Small integers: sums are exact in any order.
std::vector<float> numbers(std::size_t count, int rank) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(rank + 1) + static_cast<float>(i % 13);
  return result;
}
std::vector<std::byte> letters(std::size_t count, int rank) {
  std::vector<std::byte> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank));
  return result;
}

/// Checks and times the three ways, of which `prepare` gives the second.
template <class T, class Blocking, class Prepare, class Hand>
void measure(const Rank& rank, std::span<T> out, const Blocking& blocking, const Prepare& prepare, const Hand& hand) {
  auto prepared = prepare();
  const auto run = [&] { (void)prepared.run(); };
  check(rank, out, blocking, run, hand);
  compare(rank, blocking, run, hand);
}

void measure_barrier(const Rank& r, std::size_t) {
  auto prepared = prepare_barrier(r.world);
  compare(
      r, [&] { barrier(r.world); }, [&] { prepared.run(); }, [&] { r.hand.barrier(); });
}

void measure_all_reduce(const Rank& r, std::size_t bytes) {
  const std::vector<float> in = numbers(bytes / sizeof(float), r.world.rank());
  std::vector<float> out(in.size());
  measure(
      r, std::span(out), [&] { all_reduce(r.world, in, out); }, [&] { return prepare_all_reduce(r.world, in, out); },
      [&] { r.hand.all_reduce(in, out); });
}

void measure_reduce(const Rank& r, std::size_t bytes) {
  const std::vector<float> in = numbers(bytes / sizeof(float), r.world.rank());
  std::vector<float> out(r.world.rank() == 0 ? in.size() : 0);
  measure(
      r, std::span(out), [&] { reduce(r.world, in, out); }, [&] { return prepare_reduce(r.world, in, out); },
      [&] { r.hand.reduce(in, out); });
}

void measure_reduce_scatter(const Rank& r, std::size_t bytes) {
  const std::vector<float> in = numbers(bytes / sizeof(float), r.world.rank());
  const auto me = static_cast<std::size_t>(r.world.rank());
  std::vector<float> out(split(in.size(), static_cast<std::size_t>(r.world.size()), me).size);
  measure(
      r, std::span(out), [&] { reduce_scatter(r.world, in, out); },
      [&] { return prepare_reduce_scatter(r.world, in, out); }, [&] { r.hand.reduce_scatter(in, out); });
}

void measure_broadcast(const Rank& r, std::size_t bytes) {
  std::vector<std::byte> data = letters(bytes, r.world.rank());
  // The root's data stays what it is.
  std::span<std::byte> out(data);
  measure(
      r, r.world.rank() == 0 ? out.first(0) : out, [&] { broadcast(r.world, data); },
      [&] { return prepare_broadcast(r.world, data); }, [&] { r.hand.broadcast(data); });
}

void measure_all_gather(const Rank& r, std::size_t bytes) {
  const auto me = static_cast<std::size_t>(r.world.rank());
  const std::vector<std::byte> in =
      letters(split(bytes, static_cast<std::size_t>(r.world.size()), me).size, r.world.rank());
  std::vector<std::byte> out(bytes);
  measure(
      r, std::span(out), [&] { all_gather(r.world, in, out); }, [&] { return prepare_all_gather(r.world, in, out); },
      [&] { r.hand.all_gather(in, out); });
}

void measure_all_to_all(const Rank& r, std::size_t bytes) {
  const std::vector<std::byte> in = letters(bytes, r.world.rank());
  std::vector<std::byte> out(bytes);
  measure(
      r, std::span(out), [&] { all_to_all(r.world, in, out); }, [&] { return prepare_all_to_all(r.world, in, out); },
      [&] { r.hand.all_to_all(in, out); });
}

using Measure = void (*)(const Rank& rank, std::size_t bytes);

void run(benchmark::State& state, int ranks, std::size_t bytes, Measure measured) {
  bench::Team team(state, ranks);
  bench::RoundTrip line;
  ByHand::Table table(ranks);
  team.launch([&](Communicator& world) {
    ByHand hand(table, world.rank());
    measured(Rank{state, team, line, world, hand}, bytes);
  });
}

void add(const std::string& operation, int ranks, std::size_t bytes, Measure measured) {
  std::string name = operation + "/thread/" + std::to_string(ranks);
  if (bytes > 0) name += "/" + std::to_string(bytes);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { run(state, ranks, bytes, measured); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::size_t sizes[] = {8, 64, 1 << 10, 2 << 10, 4 << 10, 8 << 10};
  constexpr struct {
    const char* name;
    Measure measure;
  } operations[] = {{"all_reduce", measure_all_reduce}, {"reduce", measure_reduce},
                    {"broadcast", measure_broadcast},   {"reduce_scatter", measure_reduce_scatter},
                    {"all_gather", measure_all_gather}, {"all_to_all", measure_all_to_all}};
  for (const int ranks : {2, 4, 8}) {
    add("barrier", ranks, 0, measure_barrier);
    for (const auto& operation : operations) {
      for (const std::size_t bytes : sizes) add(operation.name, ranks, bytes, operation.measure);
    }
  }
  return bench::main(count, arguments);
}
