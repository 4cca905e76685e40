// SPDX-License-Identifier: Apache-2.0
// Large collectives of floats between threads: `OPERATION/thread/RANKS/BYTES/PLACE/ALGORITHM`, BYTES of a rank's whole
// vector, which is its larger buffer (of gather and scatter the root's).
//
// Time: of the slowest rank. Counters: algbw = bytes / median time; busbw = algbw times what nccl-tests multiply it by;
// copy = the machine's non-temporal copy rate, read and written bytes; limit = the share of it that the bytes which must
// be read and written reach, the median over pairs of one copy and one collective (above 1 where caches help: in place
// what is written has just been read), from 16 MiB on; hand and ratio = seconds of the direct algorithm written by hand
// (support/by_hand.hpp), and time / hand, the median over pairs; line_ns = round trip of a cache line between the first
// two ranks, the larger of before and after. The label says what that means: their cores are near or far, or busy with
// other work.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/fabric/streaming.hpp"
#include "support/by_hand.hpp"
#include "support/limits.hpp"
#include "support/team.hpp"

namespace {

using namespace meshwise;
using Floats = std::span<float>;

/// One rank's arguments. in and out are the same memory in place; part: of the whole, this rank's.
struct Arguments {
  Communicator& world;
  CollectiveOptions options;
  Floats in;
  Floats out;
  bool in_place;

  Floats part(Floats whole) const {
    const Range range =
        split(whole.size(), static_cast<std::size_t>(world.size()), static_cast<std::size_t>(world.rank()));
    return whole.subspan(range.begin, range.size);
  }
  bool is_root() const { return world.rank() == 0; }
};

enum class Places { both, apart, one };

struct Collective {
  const char* name;
  Places places;
  /// Vectors of all ranks that must be read and written, in lengths of one whole vector.
  double (*traffic)(double ranks, bool in_place);
  double (*bus)(double ranks);  ///< as in nccl-tests; 0: they do not have it
  /// What element i of the whole output is where the input of rank r is number(r, i); 0 for elements that are not there.
  double (*expected)(int rank, int ranks, std::size_t i, std::size_t count);
  void (*run)(const Arguments& a);
};

// Small integers: sums are exact in any order.
double number(int rank, std::size_t i) { return static_cast<double>(rank + 1) + static_cast<double>(i % 13); }

double sum(int first, int last, std::size_t i) {
  double result = 0;
  for (int rank = first; rank < last; ++rank) result += number(rank, i);
  return result;
}
/// The part of a vector that element i is in.
int owner(std::size_t i, std::size_t count, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::size_t k = i * n / count;
  while (split_begin(count, n, k + 1) <= i) ++k;
  return static_cast<int>(k);
}

constexpr double all_but_one(double n) { return (n - 1) / n; }

const Collective collectives[] = {
    {"all_reduce", Places::both, [](double n, bool) { return 2 * n; }, [](double n) { return 2 * all_but_one(n); },
     [](int, int n, std::size_t i, std::size_t) { return sum(0, n, i); },
     [](const Arguments& a) { all_reduce(a.world, a.in, a.out, a.options); }},
    {"reduce_scatter", Places::both, [](double n, bool) { return n + 1; }, all_but_one,
     [](int rank, int n, std::size_t i, std::size_t count) { return owner(i, count, n) == rank ? sum(0, n, i) : 0; },
     [](const Arguments& a) {
       if (a.in_place) {
         reduce_scatter(a.world, a.in, a.options);
       } else {
         reduce_scatter(a.world, a.in, a.part(a.out), a.options);
       }
     }},
    {"all_gather", Places::both, [](double n, bool in_place) { return n + (in_place ? 0 : 1); }, all_but_one,
     [](int, int n, std::size_t i, std::size_t count) { return number(owner(i, count, n), i); },
     [](const Arguments& a) {
       if (a.in_place) {
         all_gather(a.world, a.out, a.options);
       } else {
         all_gather(a.world, a.part(a.in), a.out, a.options);
       }
     }},
    {"broadcast", Places::one, [](double n, bool) { return n; }, [](double) { return 1.0; },
     [](int, int, std::size_t i, std::size_t) { return number(0, i); },
     [](const Arguments& a) { broadcast(a.world, a.out, 0, a.options); }},
    {"reduce", Places::both, [](double n, bool) { return n + 1; }, [](double) { return 1.0; },
     [](int rank, int n, std::size_t i, std::size_t) { return rank == 0 ? sum(0, n, i) : 0; },
     [](const Arguments& a) {
       if (a.in_place) {
         reduce(a.world, a.out, 0, a.options);
       } else {
         reduce(a.world, a.in, a.is_root() ? a.out : Floats(), 0, a.options);
       }
     }},
    {"gather", Places::apart, [](double, bool) { return 2.0; }, all_but_one,
     [](int rank, int n, std::size_t i, std::size_t count) { return rank == 0 ? number(owner(i, count, n), i) : 0; },
     [](const Arguments& a) { gather(a.world, a.part(a.in), a.is_root() ? a.out : Floats(), 0, a.options); }},
    {"scatter", Places::apart, [](double, bool) { return 2.0; }, all_but_one,
     [](int rank, int n, std::size_t i, std::size_t count) { return owner(i, count, n) == rank ? number(0, i) : 0; },
     [](const Arguments& a) { scatter(a.world, a.is_root() ? a.in : Floats(), a.part(a.out), 0, a.options); }},
    {"all_to_all", Places::apart, [](double n, bool) { return 2 * n; }, all_but_one,
     [](int rank, int n, std::size_t i, std::size_t count) {
       const std::size_t block = count / static_cast<std::size_t>(n);
       return number(static_cast<int>(i / block), static_cast<std::size_t>(rank) * block + i % block);
     },
     [](const Arguments& a) { all_to_all(a.world, a.in, a.out, a.options); }},
    {"inclusive_scan", Places::both, [](double n, bool) { return 2 * n; }, [](double) { return 0.0; },
     [](int rank, int, std::size_t i, std::size_t) { return sum(0, rank + 1, i); },
     [](const Arguments& a) { inclusive_scan(a.world, a.in, a.out, a.options); }},
    {"exclusive_scan", Places::both, [](double n, bool) { return 2 * n; }, [](double) { return 0.0; },
     [](int rank, int, std::size_t i, std::size_t) { return sum(0, rank, i); },
     [](const Arguments& a) { exclusive_scan(a.world, a.in, a.out, a.options); }},
};

struct Case {
  const Collective& collective;
  int ranks;
  std::size_t bytes;
  bool in_place;
  Algorithm algorithm;

  std::string name() const {
    return std::string(collective.name) + "/thread/" + std::to_string(ranks) + "/" + std::to_string(bytes) +
           (in_place ? "/in_place/" : "/out_of_place/") + algorithm_name(algorithm);
  }
  // Below this the caches decide, and the rate of the memory is no limit.
  bool has_limit() const { return bytes >= std::size_t{16} << 20; }
  bool has_hand() const {
    return std::string(collective.name) == "all_reduce" && algorithm == Algorithm::direct &&
           ranks <= bench::ByHand::most_ranks;
  }
};

Floats floats(const Storage& storage, std::size_t count) { return {reinterpret_cast<float*>(storage.data()), count}; }

/// One call whose result is known, before anything is timed. `hand` has the same result.
template <class Call>
void check(const Case& c, const Arguments& a, const Call& call) {
  const int rank = a.world.rank(), n = a.world.size();
  if (!a.in_place) std::fill(a.out.begin(), a.out.end(), 0.0F);
  for (std::size_t i = 0; i < a.in.size(); ++i) a.in[i] = static_cast<float>(number(rank, i));
  call();
  for (std::size_t i = 0; i < a.out.size(); ++i) {
    const auto expected = static_cast<float>(c.collective.expected(rank, n, i, a.out.size()));
    // In place what is no result is what it was, or scratch.
    if (a.out[i] == expected || (a.in_place && expected == 0)) continue;
    fail("benchmark", std::to_string(expected) + " at " + std::to_string(i), std::to_string(a.out[i]),
         std::string(c.collective.name) + " is wrong, its speed does not matter", rank);
  }
}

/// What the direct all_reduce of the library decides by the size.
bool streams(const Case& c) {
  const double footprint = 2.0 * c.ranks * static_cast<double>(c.bytes);
  return !c.in_place && footprint >= static_cast<double>(detail::streaming_threshold(detail::usable_cores()));
}

void run(benchmark::State& state, const Case& c) {
  bench::Team team(state, c.ranks);
  bench::RoundTrip line;
  bench::ByHand::Table table(c.ranks);
  team.launch([&](Communicator& world) {
    const std::size_t count = c.bytes / sizeof(float);
    Heap heap;
    const Storage first = heap.allocate(c.bytes);
    const Storage second = c.in_place ? first : heap.allocate(c.bytes);
    CollectiveOptions options;
    options.algorithm = c.algorithm;
    const Arguments a{world, options, floats(first, count), floats(second, count), c.in_place};
    bench::ByHand by_hand(table, world.rank());
    const auto library = [&] { c.collective.run(a); };
    const bool streaming = streams(c);
    const auto hand = [&] { by_hand.direct_all_reduce(a.in, a.out, streaming); };
    check(c, a, library);
    if (c.has_hand()) check(c, a, hand);
    if (c.in_place) std::fill(a.in.begin(), a.in.end(), 0.0F);  // sums of sums would overflow
    std::optional<bench::CopyLimit> copy;
    if (c.has_limit()) copy.emplace(heap, world.rank(), world.size());

    const int batch = bench::batch_of(c.bytes);
    const double before = line.nanoseconds(team, world);
    Prepared<Floats> planned;
    if (c.has_hand()) planned = prepare_all_reduce(world, a.in, a.out, options);
    const auto prepared = [&] { (void)planned.run(); };
    std::vector<double> times, rates, shares, hands, ratios, prepared_ratios;
    for (int round = 0; team.next(world, batch); ++round) {
      const double rate = copy ? copy->rate(team, world) : 0;
      double seconds = 0, hand_seconds = 0, prepared_seconds = 0;
      for (int turn = 0; turn < 3; ++turn) {
        const int way = (round + turn) % 3;
        if (way == 0) seconds = team.time(world, batch, library);
        if (way == 1 && c.has_hand()) prepared_seconds = team.time(world, batch, prepared);
        if (way == 2 && c.has_hand()) hand_seconds = team.time(world, batch, hand);
      }
      team.count(world, seconds);
      times.push_back(seconds / batch);
      rates.push_back(rate);
      const double moved = c.collective.traffic(c.ranks, c.in_place) * static_cast<double>(c.bytes);
      if (copy) shares.push_back(moved / (seconds / batch) / rate);
      if (!c.has_hand()) continue;
      hands.push_back(hand_seconds / batch);
      ratios.push_back(seconds / hand_seconds);
      prepared_ratios.push_back(prepared_seconds / hand_seconds);
    }
    const double after = line.nanoseconds(team, world);
    if (world.rank() != 0) return;

    const auto report = [&](const char* name, double value) {
      state.counters[name] = benchmark::Counter(value, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    };
    const double algbw = static_cast<double>(c.bytes) / bench::median(times);
    report("algbw", algbw);
    if (c.collective.bus(c.ranks) > 0) report("busbw", algbw * c.collective.bus(c.ranks));
    report("line_ns", std::max(before, after));
    if (copy) {
      report("copy", bench::median(rates));
      report("limit", bench::median(shares));
    }
    if (c.has_hand()) {
      report("hand", bench::median(hands));
      report("ratio", bench::median(ratios));
      report("prepared_ratio", bench::median(prepared_ratios));
    }
    state.SetLabel(bench::placement(before, after));
  });
}

// Whether all buffers take less than half of the memory.
bool fits(const Case& c) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return static_cast<double>(c.ranks) * static_cast<double>(c.bytes) * (c.in_place ? 1 : 2) < memory / 2;
}

void add(const Case& c) {
  if (!fits(c)) return;
  auto* one = benchmark::RegisterBenchmark(c.name().c_str(), [c](benchmark::State& state) { run(state, c); });
  one->UseManualTime()->Unit(benchmark::kMicrosecond);
  if (c.has_limit()) one->Iterations(21);  // pairs enough for a median
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::size_t sizes[] = {32 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20};
  for (const Collective& collective : collectives) {
    for (const int ranks : {2, 4, 8}) {
      for (const std::size_t bytes : sizes) {
        for (const bool in_place : {false, true}) {
          if (collective.places == (in_place ? Places::apart : Places::one)) continue;
          add({collective, ranks, bytes, in_place, Algorithm::direct});
          if (&collective == collectives) add({collective, ranks, bytes, in_place, Algorithm::ring});
        }
      }
    }
  }
  return bench::main(count, arguments);
}
