// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job of meshwise-tune do: all points of one fabric and one size of group.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "board.hpp"
#include "contest.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "options.hpp"

namespace tune {

/// One point to measure.
struct Point {
  std::string fabric;
  int ranks = 0;
  Way way = Way::memory;
  Operation operation = Operation::all_reduce;
  std::uint64_t bytes = 0;
  Result result{};
};

/// All points, those of one job behind each other, and there those of one row behind each other.
inline std::vector<Point> points_of(const Options& options) {
  std::vector<Point> points;
  for (const std::string& fabric : options.fabrics) {
    for (const int ranks : options.ranks) {
      for (const Way way : options.ways) {
        if (way == Way::foreign && fabric == "thread") continue;  // threads address everything
        for (const Operation operation : options.operations) {
          for (const std::uint64_t bytes : options.sizes()) points.push_back({fabric, ranks, way, operation, bytes});
        }
      }
    }
  }
  return points;
}

/// Says what is being measured, on a terminal only.
class Progress {
 public:
  explicit Progress(std::size_t points) : points_(points), shown_(isatty(2) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void show(std::size_t number, const Point& point) const {
    if (!shown_) return;
    std::fprintf(stderr, "\r\x1b[K%zu of %zu: %s, %d ranks, %s, %s %s", number + 1, points_, point.fabric.c_str(),
                 point.ranks, meshwise::way_name(point.way), meshwise::operation_name(point.operation),
                 meshwise::detail::bytes_text(point.bytes).c_str());
    std::fflush(stderr);
  }

 private:
  std::size_t points_;
  bool shown_;
};

/// The points of one job: from `first` to `last` - 1.
struct Job {
  const std::vector<Point>& points;
  std::size_t first, last;
  std::int64_t end;  ///< by when all points of all jobs should be measured
  Board& board;
  const Progress& progress;

  void operator()(meshwise::Communicator& world) const {
    const Way way = points[first].way;
    std::uint64_t most = 0;
    for (std::size_t k = first; k < last; ++k) most = std::max(most, points[k].bytes);
    const std::size_t count = elements(most, world.size());
    const meshwise::MemorySource* const shared = world.endpoint().memory();
    meshwise::Heap heap(way != Way::foreign && shared != nullptr ? *shared : meshwise::host_memory());
    const meshwise::Storage first_memory = heap.allocate(count * sizeof(float));
    const meshwise::Storage second_memory = heap.allocate(count * sizeof(float));
    const std::span<float> in(reinterpret_cast<float*>(first_memory.data()), count);
    const std::span<float> out(reinterpret_cast<float*>(second_memory.data()), count);
    std::fill(in.begin(), in.end(), 0.0F);
    std::fill(out.begin(), out.end(), 0.0F);
    auto* const endpoint = dynamic_cast<meshwise::detail::MemoryEndpoint*>(&world.endpoint());
    if (world.rank() == 0 && endpoint != nullptr) board.cores = endpoint->job().cores();
    meshwise::Selector selector(meshwise::Topology::flat(world.size()));
    Council council(board, world);
    for (std::size_t k = first; k < last; ++k) {
      const Point& point = points[k];
      // What has taken longer than its part is taken off that of all others.
      const std::int64_t left = end - meshwise::monotonic_nanoseconds();
      const std::int64_t part = std::max(left, std::int64_t{0}) / static_cast<std::int64_t>(points.size() - k);
      const double seconds = std::max(static_cast<double>(council.agree(part)) * 1e-9, 2e-3);
      if (world.rank() == 0) progress.show(k, point);
      meshwise::Question question;
      question.shape = meshwise::Shape{point.operation, world.size(), 0, meshwise::rooted(point.operation)};
      const std::size_t size = elements(point.bytes, world.size());
      question.bytes = size * sizeof(float);
      question.memory = way == Way::memory;
      question.foreign = way == Way::foreign;
      Contest contest(council, world, point.operation, Buffers{in.first(size), out.first(size)});
      const Result result = contest.hold(contestants(selector, question), seconds);
      if (world.rank() == 0) board.results[k - first] = result;
    }
  }
};

/// Measures all points. Returns the cores that the jobs may use.
inline int measure(std::vector<Point>& points, double seconds) {
  Board* const board = Board::make();
  const Progress progress(points.size());
  const std::int64_t end = meshwise::monotonic_nanoseconds() + static_cast<std::int64_t>(seconds * 1e9);
  for (std::size_t first = 0; first < points.size();) {
    const Point& one = points[first];
    std::size_t last = first;
    while (last < points.size() && last - first < Board::most_results && points[last].fabric == one.fabric &&
           points[last].ranks == one.ranks && points[last].way == one.way) {
      ++last;
    }
    meshwise::LaunchOptions options;
    options.settings = meshwise::Settings{};  // what the environment forces must not be measured
    options.messages = one.way == Way::messages;
    const Job job{points, first, last, end, *board, progress};
    if (one.fabric == "thread") {
      meshwise::launch(one.ranks, options, job);
    } else {
      meshwise::launch_processes(one.ranks, options, job);
    }
    for (std::size_t k = first; k < last; ++k) points[k].result = board->results[k - first];
    first = last;
  }
  const int cores = board->cores;
  munmap(board, sizeof(Board));
  return cores;
}

}  // namespace tune
