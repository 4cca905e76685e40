// SPDX-License-Identifier: Apache-2.0
// A language model of one attention layer whose sequences are cut over the ranks: keys and values go round a ring, the
// numbers are those of one rank, and under the causal mask every rank does the same work.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/parallel/context.hpp"
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/generate.hpp"
#include "meshwise/tensor/position_ids.hpp"
#include "meshwise/tensor/to_global.hpp"
#include "support/command_line.hpp"

namespace {

using namespace meshwise;
using Grid = Mesh<cp>;
using Tokens = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<seq, Zigzag<cp>>>>;
template <class D>
using Weight = Tensor<double, D, Layout<Grid>>;

constexpr std::size_t sequences = 2, length = 208, words = 17, width = 24, query_heads = 4, key_heads = 2, per_head = 6;

// The token `ahead` of each position of the sequences.
Tokens tokens(const Grid& mesh, std::size_t ahead) {
  return generate<Tokens>(mesh, {sequences, length}, [ahead](const auto& i) {
    const std::uint64_t text = stream_seed(7, i.template position<batch>());
    return static_cast<std::int32_t>(random_bits(text, i.template position<seq>() + ahead) % words);
  });
}

template <class D>
Weight<D> random(const Grid& mesh, const Extents<D>& extents, std::uint64_t stream) {
  return generate<Weight<D>>(mesh, extents, [&](const auto& i) { return 0.3 * normal(stream, i.linear); });
}

using Results = std::vector<std::pair<const char*, std::vector<double>>>;
Results model(const Grid& mesh) {
  // All goes by global positions: labels, shifted before they are cut, learned positions, and the mask.
  const auto ids = tokens(mesh, 0), labels = tokens(mesh, 1);
  const auto table = random<Dims<vocab, hidden>>(mesh, {words, width}, 0);
  const auto places = random<Dims<vocab, hidden>>(mesh, {length, width}, 1);
  const auto wq = random<Dims<hidden, heads, head_dim>>(mesh, {width, query_heads, per_head}, 2);
  const auto wk = random<Dims<hidden, kv, head_dim>>(mesh, {width, key_heads, per_head}, 3);
  const auto wv = random<Dims<hidden, kv, head_dim>>(mesh, {width, key_heads, per_head}, 4);
  const auto wo = random<Dims<heads, head_dim, vocab>>(mesh, {query_heads, per_head, words}, 5);
  const double factor = 1 / std::sqrt(static_cast<double>(per_head));

  const auto x = lookup<vocab>(table, ids) + lookup<vocab>(places, position_ids<seq>(ids));
  const auto q = contract<hidden>(x, wq);
  const auto k = rename<seq, key<seq>>(contract<hidden>(x, wk)), v = rename<seq, key<seq>>(contract<hidden>(x, wv));
  const Traffic start = mesh.along<cp>().traffic();
  const auto attended = ring_attention<cp>(q, k, v, CausalMask{}, factor);
  const Traffic forward = mesh.along<cp>().traffic() - start;
  const auto loss = cross_entropy<vocab>(contract<heads, head_dim>(attended.out, wo), labels, sequences * length);

  const auto dlogits = cross_entropy_backward<vocab>(gradient_seed(loss.loss), loss, labels);
  const auto dout = einsum<Dims<batch, seq, heads, head_dim>>(dlogits, wo);
  const auto d = ring_attention_backward<cp>(dout, q, k, v, attended, CausalMask{}, factor);
  const Traffic backward = mesh.along<cp>().traffic() - start - forward;
  const auto dwq = contract<batch, seq>(x, d.q);  // Partial<cp>: every rank has seen its part of the sequences
  const auto dwk = contract<batch, seq>(x, rename<key<seq>, seq>(d.k));
  const auto dwv = contract<batch, seq>(x, rename<key<seq>, seq>(d.v));

  std::vector<std::size_t> sums{forward.moved, backward.moved, attended.scores}, most{attended.scores};
  all_reduce(mesh.along<cp>(), sums);
  all_reduce<Max>(mesh.along<cp>(), most);
  const auto hops = static_cast<std::size_t>(mesh.size<cp>() - 1), bytes = (k.size() + v.size()) * sizeof(double);
  const std::size_t pairs = sequences * query_heads * length * (length + 1) / 2;  // that the mask leaves
  if (mesh.is_first()) {
    std::printf(
        "cp = %d: bytes forward %zu, formula (n-1) (K + V) %zu; backward %zu, formula %zu;\n"
        "        scores %zu, half of all pairs %zu; the busiest rank has %.3f of its share\n",
        mesh.size<cp>(), sums[0], hops * bytes, sums[1], 2 * hops * bytes, sums[2], pairs,
        static_cast<double>(most[0]) * mesh.size<cp>() / static_cast<double>(pairs));
  }
  if (sums[0] != hops * bytes || sums[1] != 2 * hops * bytes || sums[2] != pairs) {
    throw std::runtime_error("other bytes or pairs than by the formula");
  }
  return {{"loss", to_global(loss.loss)}, {"out", to_global(attended.out)}, {"dq", to_global(d.q)},
          {"dwq", to_global(dwq)},        {"dwk", to_global(dwk)},          {"dwv", to_global(dwv)}};
}

void compare(Communicator& world) {
  Communicator alone = world.split(world.rank());  // every rank is a group of its own there
  Results expected;
  if (world.rank() == 0) expected = model(Grid(alone, {1}));
  const Results found = model(Grid(world, {world.size()}));
  if (world.rank() != 0) return;
  for (std::size_t i = 0; i < found.size(); ++i) {
    double scale = 0, difference = 0;
    for (std::size_t n = 0; n < expected[i].second.size(); ++n) {
      scale = std::max(scale, std::abs(expected[i].second[n]));
      difference = std::max(difference, std::abs(found[i].second[n] - expected[i].second[n]));
    }
    std::printf("%-5s differs from that of one rank by %.1e of %.3g\n", found[i].first, difference, scale);
    if (!(difference <= 1e-13 * scale)) throw std::runtime_error("not what one rank computes");
  }
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Ring attention, checked against one rank.", compare);
}
