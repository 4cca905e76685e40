// SPDX-License-Identifier: Apache-2.0
// Communication while something else happens: started and prepared collectives, groups of messages, vectors of any
// length, and a text whose length only one rank knows.

#include <array>
#include <cstdio>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast_bytes.hpp"
#include "meshwise/collective/group.hpp"
#include "support/command_line.hpp"

namespace {

using namespace meshwise;

void require(const Communicator& world, bool right, const char* what) {
  if (!right) throw std::runtime_error(std::string(what) + ": wrong on rank " + std::to_string(world.rank()));
}
void say(const Communicator& world, const std::string& text) {
  if (world.rank() == 0) std::printf("%s\n", text.c_str());
}

// A sum is on its way while this rank computes. What is moved in belongs to the operation until `wait` gives it back.
void started(Communicator& world) {
  std::vector<double> mine(50000, world.rank() + 1);
  Pending<std::vector<double>> pending = start_all_reduce(world, std::move(mine));
  double own = 0;
  int parts = 0;
  do {
    for (int i = 0; i < 1000; ++i) own += 1.0 / (1 + world.rank() + i + parts);
    ++parts;
  } while (!pending.test());  // nobody else makes progress for it: ask now and then
  const std::vector<double> sum = pending.wait();
  const int size = world.size();
  require(world, own > 0 && sum.size() == 50000 && sum.back() == size * (size + 1) / 2, "started sum");
  say(world, "started: the sum of 50000 numbers arrived while something else was computed");
}

// Checked and planned once, run in every step on the same memory.
void prepared(Communicator& world) {
  std::array<float, 3> gradient{};
  Prepared<std::span<float>> sum = prepare_all_reduce<Average>(world, gradient);
  float weight = 0;
  for (int step = 0; step < 100; ++step) {
    gradient = {weight - 1, 1.0F * static_cast<float>(world.rank()), 0};
    weight -= 0.5F * sum.run()[0];
  }
  require(world, weight == 1 && gradient[1] == 0.5F * static_cast<float>(world.size() - 1), "prepared average");
  say(world, "prepared: 100 steps of one average brought the weight to " + std::to_string(weight));
}

// A rod in pieces; each step needs the neighbours' ends. All messages of a group are on their way at once, and
// whatever this rank waits for, they are received.
void halo(Communicator& world) {
  constexpr int cells = 8;
  const int rank = world.rank(), last = world.size() - 1;
  std::vector<double> heat(cells + 2, 0.0), next(heat);
  for (int i = 1; i <= cells; ++i) heat[static_cast<std::size_t>(i)] = rank * cells + i;  // a straight line stays
  for (int step = 0; step < 50; ++step) {
    const std::span<double> all(heat);
    Pending<void> ends = start_group(world, [&](Group& g) {
      if (rank > 0) g.send(all.subspan(1, 1), rank - 1), g.receive(all.subspan(0, 1), rank - 1);
      if (rank < last) g.send(all.subspan(cells, 1), rank + 1), g.receive(all.subspan(cells + 1, 1), rank + 1);
    });
    const auto smooth = [&](std::size_t i) { next[i] = (heat[i - 1] + heat[i + 1]) / 2; };
    for (std::size_t i = 2; i < cells; ++i) smooth(i);  // needs no neighbour
    ends.wait();
    if (rank == 0) heat[0] = 0;
    if (rank == last) heat[cells + 1] = (last + 1) * cells + 1;
    smooth(1), smooth(cells);
    std::swap(heat, next);
  }
  for (int i = 1; i <= cells; ++i) require(world, heat[static_cast<std::size_t>(i)] == rank * cells + i, "halo");
  say(world, "group: 50 steps with the neighbours' ends left a straight line straight");
}

// Rank r has r + 1 words, and nobody but rank 0 knows the headline.
void uneven(Communicator& world) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(world.size()));
  std::iota(counts.begin(), counts.end(), 1U);
  const std::vector<int> mine(counts[static_cast<std::size_t>(world.rank())], world.rank());
  std::vector<int> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  all_gather_v(world, mine, all, counts);
  std::string list;
  for (const int owner : all) list += ' ' + std::to_string(owner);
  std::size_t at = 0;
  for (int owner = 0; owner < world.size(); ++owner) {
    for (int k = 0; k <= owner; ++k) require(world, all[at++] == owner, "all_gather_v");
  }
  std::string headline = world.rank() == 0 ? "all_gather_v: parts of any length," + list : "";
  broadcast_bytes(world, headline);
  require(world, headline == "all_gather_v: parts of any length," + list, "broadcast of a text");
  say(world, headline);
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Communicates while it computes.",
                        [](Communicator& world) { started(world), prepared(world), halo(world), uneven(world); });
}
