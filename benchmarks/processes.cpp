// SPDX-License-Identifier: Apache-2.0
// The same collectives on threads and on processes whose buffers lie in the library's heap, or are private: how much
// slower a rank of another process is. Alternated in one run, on the same cores; medians, and the ratio of each pair.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/core/deadline.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace {

using namespace meshwise;

constexpr const char* verbs[] = {"all_reduce", "all_reduce in place", "reduce_scatter", "all_gather", "broadcast",
                                 "reduce",     "all_to_all"};

void perform(Communicator& world, int verb, std::span<float> in, std::span<float> out) {
  const std::size_t part = in.size() / static_cast<std::size_t>(world.size());
  switch (verb) {
    case 0: all_reduce(world, in, out); break;
    case 1: all_reduce(world, in); break;
    case 2: reduce_scatter(world, in, out.first(part)); break;
    case 3: all_gather(world, in.first(part), out); break;
    case 4: broadcast(world, in, 0); break;
    case 5: reduce(world, in, out, 0); break;
    default: all_to_all(world, in, out); break;
  }
}

/// Where ranks of both kinds leave their figures.
struct Board {
  double seconds;
};

enum class Kind { threads, shared, foreign };

/// Seconds of one call on average over a batch, the slowest rank's, as rank 0 finds it.
void measure(Communicator& world, Kind kind, int verb, std::size_t bytes, int calls, Board& board) {
  const std::size_t ranks = static_cast<std::size_t>(world.size());
  const std::size_t count = bytes / sizeof(float) / ranks * ranks;
  const MemorySource* const source = world.endpoint().memory();
  Heap heap(kind == Kind::shared && source != nullptr ? *source : host_memory());
  const Storage first = heap.allocate(bytes), second = heap.allocate(bytes);
  const std::span<float> in(reinterpret_cast<float*>(first.data()), count);
  const std::span<float> out(reinterpret_cast<float*>(second.data()), count);
  std::fill(in.begin(), in.end(), 0.0F);
  std::fill(out.begin(), out.end(), 0.0F);
  for (int k = 0; k < 3; ++k) perform(world, verb, in, out);
  barrier(world);
  const std::int64_t start = monotonic_nanoseconds();
  for (int k = 0; k < calls; ++k) perform(world, verb, in, out);
  double seconds = static_cast<double>(monotonic_nanoseconds() - start) * 1e-9 / calls;
  std::vector<double> slowest{seconds};
  all_reduce<Max>(world, slowest);
  if (world.rank() == 0) board.seconds = slowest[0];
}

double run(Kind kind, int ranks, int verb, std::size_t bytes, int calls, Board& board) {
  const auto program = [&](Communicator& world) { measure(world, kind, verb, bytes, calls, board); };
  if (kind == Kind::threads) {
    launch(ranks, program);
  } else {
    launch_processes(ranks, program);
  }
  return board.seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  int pairs = 7;
  std::vector<int> ranks{2, 4, 8};
  std::vector<std::size_t> sizes{std::size_t{32} << 10, std::size_t{256} << 10, std::size_t{1} << 20,
                                 std::size_t{16} << 20, std::size_t{64} << 20};
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--pairs" && i + 1 < count) {
      pairs = std::max(1, std::atoi(arguments[++i]));
    } else if (word == "--ranks" && i + 1 < count) {
      ranks = {std::max(1, std::atoi(arguments[++i]))};
    } else if (word == "--bytes" && i + 1 < count) {
      sizes = {static_cast<std::size_t>(std::strtoull(arguments[++i], nullptr, 10))};
    } else {
      std::printf(
          "usage: processes [--pairs N] [--ranks N] [--bytes N]\n"
          "  microseconds of collectives on threads, on processes with buffers in the library's heap, and with "
          "private\n"
          "  ones; ratios are medians over N alternated runs of each\n");
      return word == "--help" ? 0 : 2;
    }
  }
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& board = *static_cast<Board*>(memory);
  std::printf("%-20s %5s %9s | %10s %10s %6s | %10s %6s\n", "", "ranks", "bytes", "threads us", "heap us", "ratio",
              "private us", "ratio");
  for (const int n : ranks) {
    for (std::size_t verb = 0; verb < std::size(verbs); ++verb) {
      for (const std::size_t bytes : sizes) {
        const int calls = static_cast<int>(std::clamp<std::size_t>((std::size_t{256} << 20) / bytes, 5, 2000));
        std::vector<double> threads, shared, foreign, ratio, other;
        for (int k = 0; k < pairs; ++k) {
          threads.push_back(run(Kind::threads, n, static_cast<int>(verb), bytes, calls, board) * 1e6);
          shared.push_back(run(Kind::shared, n, static_cast<int>(verb), bytes, calls, board) * 1e6);
          foreign.push_back(run(Kind::foreign, n, static_cast<int>(verb), bytes, calls, board) * 1e6);
          ratio.push_back(shared.back() / threads.back());
          other.push_back(foreign.back() / threads.back());
        }
        std::printf("%-20s %5d %9zu | %10.2f %10.2f %6.2f | %10.2f %6.2f\n", verbs[verb], n, bytes, median(threads),
                    median(shared), median(ratio), median(foreign), median(other));
        std::fflush(stdout);
      }
    }
  }
}
