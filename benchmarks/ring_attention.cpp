// SPDX-License-Identifier: Apache-2.0
// Causal ring attention by the rule that splits the sequence: `ring_attention/PASS/thread/RANKS/LENGTH`, PASS forward or
// backward, LENGTH tokens in all.
//
// Time: of the slowest rank with Zigzag. Counters: contiguous, striped = time with these rules / time with Zigzag, the
// medians over alternating turns; pairs = what contiguous would be by pairs of queries and keys, 2 - 1/n.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "meshwise/parallel/context.hpp"
#include "support/team.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<cp>;
constexpr std::size_t query_heads = 2, key_heads = 1, width = 64;

/// One rule's tensors, forward and backward.
template <class Rule>
class Attention {
  using Q = Tensor<float, Dims<batch, seq, heads, head_dim>, Layout<Grid, Shard<seq, Rule>>>;
  using K = Tensor<float, Dims<batch, key<seq>, kv, head_dim>, Layout<Grid, Shard<key<seq>, Rule>>>;
  using Attending = decltype(ring_attention<cp>(std::declval<const Q&>(), std::declval<const K&>(),
                                                std::declval<const K&>(), CausalMask{}, 1.0));

 public:
  Attention(const Grid& mesh, std::size_t length)
      : q_(mesh, {1, length, query_heads, width}), k_(mesh, {1, length, key_heads, width}) {
    forward();
  }
  void forward() { attended_.emplace(ring_attention<cp>(q_, k_, k_, CausalMask{}, 0.125)); }
  void backward() {
    benchmark::DoNotOptimize(ring_attention_backward<cp>(q_, q_, k_, k_, *attended_, CausalMask{}, 0.125).scores);
  }

 private:
  Q q_;
  K k_;
  std::optional<Attending> attended_;
};

void run(benchmark::State& state, int ranks, std::size_t length, bool backward) {
  bench::Team team(state, ranks);
  team.launch([&](Communicator& world) {
    const Grid mesh(world, {world.size()});
    Attention<Zigzag<cp>> zigzag(mesh, length);
    Attention<Striped<cp>> striped(mesh, length);
    Attention<cp> contiguous(mesh, length);
    std::vector<double> by_parts, by_stripes;
    const auto time = [&](auto& attention) {
      return team.time(world, 1, [&] { backward ? attention.backward() : attention.forward(); });
    };
    while (team.next(world, 1)) {
      const double before = time(contiguous), stripes = time(striped), best = time(zigzag), after = time(contiguous);
      team.count(world, best);
      by_parts.push_back((before + after) / 2 / best);
      by_stripes.push_back(stripes / best);
    }
    if (world.rank() != 0) return;
    state.counters["contiguous"] = bench::median(by_parts);
    state.counters["striped"] = bench::median(by_stripes);
    state.counters["pairs"] = 2 - 1.0 / ranks;
  });
}

}  // namespace

int main(int count, char** arguments) {
  for (const bool backward : {false, true}) {
    for (const int ranks : {2, 4}) {
      for (const std::size_t length : {std::size_t{512}, std::size_t{2048}, std::size_t{4096}}) {
        const std::string name = std::string("ring_attention/") + (backward ? "backward" : "forward") + "/thread/" +
                                 std::to_string(ranks) + "/" + std::to_string(length);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, ranks, length, backward); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return bench::main(count, arguments);
}
