// SPDX-License-Identifier: Apache-2.0
// Context parallelism: what ring attention sends forward and backward, and the pairs that every rank evaluates.
#include "meshwise/parallel/context.hpp"

#include "measure.hpp"
#include "meshwise/collective/all_reduce.hpp"

namespace volumes {

namespace {

using namespace meshwise;
using Grid = Mesh<cp>;
using Element = bf16;
template <class Rule>
using Queries = Tensor<Element, Dims<batch, seq, heads, head_dim>, Layout<Grid, Shard<seq, Rule>>>;
template <class Rule>
using Keys = Tensor<Element, Dims<batch, key<seq>, kv, head_dim>, Layout<Grid, Shard<key<seq>, Rule>>>;

enum class Meter { forward, backward, busiest };

/// One meter of causal attention of a model's heads, over a sequence of `length(model)` tokens.
template <class Rule, class Length, class Formula>
Row attends(std::string name, std::string text, Meter meter, const Length& length, const Formula& formula) {
  Row row{std::move(name), std::move(text), {}, {ranks, ranks}};
  for (std::size_t i = 0; i < model_count; ++i) {
    const Model& m = models[i];
    Pair& pair = row.of[i];
    const std::size_t tokens = length(m);
    pair.formula = formula(m, tokens);
    on_grid<Grid>({ranks}, [&](const Grid& mesh) {
      const Queries<Rule> q(mesh, {m.batch, tokens, m.heads, m.head_dim()});
      const Keys<Rule> k(mesh, {m.batch, tokens, m.keys(), m.head_dim()});
      std::array<std::uint64_t, 1> pairs{};
      std::optional<decltype(ring_attention<cp>(q, k, k, CausalMask{}, 1.0))> attended;
      const Ledger there = ledger_of(mesh, [&] { attended.emplace(ring_attention<cp>(q, k, k, CausalMask{}, 1.0)); });
      pairs[0] = attended->scores / (m.batch * m.heads);
      const Ledger back =
          ledger_of(mesh, [&] { (void)ring_attention_backward<cp>(q, q, k, k, *attended, CausalMask{}, 1.0); });
      all_reduce<Max>(mesh.world(), pairs);
      if (!mesh.is_first()) return;
      pair.measured = meter == Meter::forward ? sent(there) : meter == Meter::backward ? sent(back) : pairs[0];
    });
    if (meter == Meter::busiest) row.divisor[i] = 1;
  }
  return row;
}

}  // namespace

Table context() {
  constexpr std::uint64_t n = ranks;
  const auto own = [](const Model& m) { return m.sequence; };
  const auto whole = [](const Model& m) { return m.sequence / (2 * n) * 2 * n; };  // 2n chunks of C tokens each
  const auto keys = [](const Model& m, std::size_t tokens) {
    return 2 * m.batch * tokens * m.keys() * m.head_dim();  // and values
  };
  Table table{"Context parallelism", "bytes per layer, micro-batch and rank; pairs per head", {}};
  table.rows.push_back(attends<Zigzag<cp>>(
      "ring attention, forward", "(n-1) hops of 2 b (s/n) d_kv β", Meter::forward, own,
      [&](const Model& m, std::size_t tokens) { return (n - 1) * keys(m, tokens) * sizeof(Element); }));
  table.rows.push_back(attends<Zigzag<cp>>("ring attention, backward", "(n-1) hops of 2 b (s/n) d_kv (β + 4)",
                                           Meter::backward, own, [&](const Model& m, std::size_t tokens) {
                                             return (n - 1) * keys(m, tokens) *
                                                    (sizeof(Element) + sizeof(accumulate_t<Element>));
                                           }));
  table.rows.push_back(attends<Zigzag<cp>>("pairs of the busiest rank, zigzag", "2n C² + C, C = s/2n", Meter::busiest,
                                           whole, [](const Model&, std::size_t tokens) {
                                             const std::uint64_t c = tokens / (2 * n);
                                             return 2 * n * c * c + c;
                                           }));
  table.rows.push_back(attends<cp>("the same, contiguous parts", "(n-1) P² + P(P+1)/2, P = s/n", Meter::busiest, whole,
                                   [](const Model&, std::size_t tokens) {
                                     const std::uint64_t p = tokens / n;
                                     return (n - 1) * p * p + p * (p + 1) / 2;
                                   }));
  return table;
}

}  // namespace volumes
