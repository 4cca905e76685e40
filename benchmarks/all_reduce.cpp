// SPDX-License-Identifier: Apache-2.0
// all_reduce of floats between threads: `all_reduce/thread/RANKS/BYTES/PLACE/ALGORITHM`, BYTES of each rank's vector.
//
// Time: of the slowest rank. Counters: algbw = bytes / median time; busbw = algbw 2(n-1)/n, as in nccl-tests; copy =
// the machine's non-temporal copy rate, read and written bytes; limit = the share of it that the 2 n BYTES which must
// be read and written reach, the median over pairs of one copy and one all_reduce (above 1 where caches help: in place
// what is written has just been read); line_ns = round trip of a cache line between the first two ranks, the larger of
// before and after. The label says what that means: their cores are near or far, or busy with other work.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "support/limits.hpp"
#include "support/team.hpp"

namespace {

using meshwise::Algorithm;
using meshwise::Communicator;

struct Case {
  int ranks;
  std::size_t bytes;
  bool in_place;
  Algorithm algorithm;

  std::string name() const {
    return "all_reduce/thread/" + std::to_string(ranks) + "/" + std::to_string(bytes) +
           (in_place ? "/in_place/" : "/out_of_place/") + algorithm_name(algorithm);
  }
  // Below this the caches decide, and the rate of the memory is no limit.
  bool has_limit() const { return bytes >= std::size_t{16} << 20; }
};

// By the round trip of a line; with a machine that is busy with something else the ranks wait for a core.
const char* placement(double ns) { return ns < 200 ? "near" : ns < 2000 ? "far" : "busy"; }

// Small integers: sums are exact in any order.
float number(int rank, std::size_t i) { return static_cast<float>(rank + 1) + static_cast<float>(i % 13); }

std::span<float> floats(const meshwise::Storage& storage, std::size_t count) {
  return {reinterpret_cast<float*>(storage.data()), count};
}

// One call whose result is known, before anything is timed.
void check(Communicator& world, std::span<float> in, std::span<float> out, const meshwise::CollectiveOptions& options) {
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = number(world.rank(), i);
  meshwise::all_reduce(world, in, out, options);
  const int n = world.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float expected = static_cast<float>(n * (n + 1) / 2) + static_cast<float>(n) * static_cast<float>(i % 13);
    if (out[i] == expected) continue;
    meshwise::fail("benchmark", std::to_string(expected) + " at " + std::to_string(i), std::to_string(out[i]),
                   "all_reduce is wrong, its speed does not matter", world.rank());
  }
}

void run(benchmark::State& state, const Case& c) {
  bench::Team team(state, c.ranks);
  bench::RoundTrip line;
  team.launch([&](Communicator& world) {
    const meshwise::CollectiveOptions options{c.algorithm};
    const std::size_t count = c.bytes / sizeof(float);
    meshwise::Heap heap;
    const meshwise::Storage first = heap.allocate(c.bytes);
    const meshwise::Storage second = c.in_place ? first : heap.allocate(c.bytes);
    const std::span<float> in = floats(first, count), out = floats(second, count);
    check(world, in, out, options);
    if (c.in_place) std::fill(in.begin(), in.end(), 0.0F);  // sums of sums would overflow
    std::optional<bench::CopyLimit> copy;
    if (c.has_limit()) copy.emplace(heap, world.rank(), world.size());

    const int batch = bench::batch_of(c.bytes);
    const double before = line.nanoseconds(team, world);
    std::vector<double> times, rates, shares;
    while (team.next(world, batch)) {
      const double rate = copy ? copy->rate(team, world) : 0;
      const double seconds = team.time(world, batch, [&] { meshwise::all_reduce(world, in, out, options); });
      team.count(world, seconds);
      times.push_back(seconds / batch);
      rates.push_back(rate);
      if (copy) shares.push_back(2.0 * c.ranks * static_cast<double>(c.bytes) / seconds / rate);
    }
    const double after = line.nanoseconds(team, world);
    if (world.rank() != 0) return;

    const auto report = [&](const char* name, double value) {
      state.counters[name] = benchmark::Counter(value, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    };
    const double algbw = static_cast<double>(c.bytes) / bench::median(times);
    report("algbw", algbw);
    report("busbw", algbw * 2 * (c.ranks - 1) / c.ranks);
    report("line_ns", std::max(before, after));
    if (copy) {
      report("copy", bench::median(rates));
      report("limit", bench::median(shares));
    }
    const std::string begun = placement(before), ended = placement(after);
    state.SetLabel(begun == ended ? begun : begun + ", then " + ended);
  });
}

// Whether all buffers take less than half of the memory.
bool fits(const Case& c) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return static_cast<double>(c.ranks) * static_cast<double>(c.bytes) * (c.in_place ? 1 : 2) < memory / 2;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::size_t sizes[] = {8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 19, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  for (const int ranks : {2, 4, 8}) {
    for (const std::size_t bytes : sizes) {
      for (const bool in_place : {false, true}) {
        for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
          const Case c{ranks, bytes, in_place, algorithm};
          if (!fits(c)) continue;
          auto* one = benchmark::RegisterBenchmark(c.name().c_str(), [c](benchmark::State& state) { run(state, c); });
          one->UseManualTime()->Unit(benchmark::kMicrosecond);
          if (c.has_limit()) one->Iterations(21);  // pairs enough for a median
        }
      }
    }
  }
  return bench::main(count, arguments);
}
