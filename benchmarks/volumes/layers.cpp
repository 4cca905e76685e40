// SPDX-License-Identifier: Apache-2.0
// Tensor and sequence parallelism: what a transformer block sends in the forward and the backward of a micro-batch, and
// what it saves in between.
#include "measure.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/parallel/transformer.hpp"

namespace volumes {

namespace {

using namespace meshwise;
using Grid = Mesh<dp, tp>;
using Element = bf16;
constexpr std::uint64_t bytes = sizeof(Element);

// The forms of the formulas keep the choices of dropout, a byte each, and the dropped probabilities.
struct Plain : BlockForm {
  static constexpr bool sequence_parallel = false;
  static constexpr auto masks = Masks::kept;
};
struct Sequence : BlockForm {
  static constexpr auto gathered = Gathered::again;
  static constexpr auto masks = Masks::kept;
};
struct Selective : Sequence {
  static constexpr auto recompute = Recompute::selective;
};
struct Full : Sequence {
  static constexpr auto recompute = Recompute::full;
};

/// What one block of a form sends and saves, in bytes over all ranks.
struct Meters {
  std::uint64_t sent = 0, saved = 0;
};

template <class Form>
Meters measure(const Model& m, std::array<int, 2> sizes) {
  using Block = TransformerBlock<Element, Grid, Form>;
  using P = typename Block::Parameters;
  Meters meters;
  on_grid<Grid>(sizes, [&](const Grid& mesh) {
    const decltype(P::norm1_gain) v(mesh, {m.hidden});
    const decltype(P::query_weight) w(mesh, {m.hidden, m.heads, m.head_dim()});
    const decltype(P::query_bias) b(mesh, {m.heads, m.head_dim()});
    const P p{{v,
               v,
               {mesh, {m.heads, m.head_dim(), m.hidden}},
               v,
               v,
               v,
               {mesh, {m.hidden, m.ffn()}},
               {mesh, {m.ffn()}},
               {mesh, {m.ffn(), m.hidden}},
               v},
              w,
              b,
              w,
              b,
              w,
              b};
    const typename Block::X x(mesh, {m.batch, m.sequence, m.hidden});
    const typename Block::Drop drop{0.1, 1, 2, {0.1, 3}};
    const std::size_t before = mesh.memory().usage(Category::activations).current - x.local().size_bytes();
    std::size_t after = 0;
    const Ledger ledger = ledger_of(mesh, [&] {
      auto [y, saved] = Block::forward(p, x, drop);
      const auto dy = std::move(y);
      after = mesh.memory().usage(Category::activations).current - dy.local().size_bytes();
      (void)Block::backward(p, saved, dy, drop);
    });
    std::array<std::uint64_t, 1> held{after - before};
    all_reduce<Sum>(mesh.world(), held);
    if (mesh.is_first()) meters = {sent(ledger), held[0]};
  });
  return meters;
}

constexpr std::array<int, 2> tensor{1, ranks}, data{ranks, 1};

/// A form with the models that it was measured for.
template <class Form>
struct Measured {
  Meters of[model_count];
  explicit Measured(std::array<int, 2> sizes = tensor) {
    for (std::size_t i = 0; i < model_count; ++i) of[i] = measure<Form>(models[i], sizes);
  }
};

/// `factor` (t-1) b s h elements in all.
template <class Form>
Row sends(const Measured<Form>& form, std::string name, std::string text, std::uint64_t factor) {
  Row row{std::move(name), std::move(text), {}, {ranks, ranks}};
  for (std::size_t i = 0; i < model_count; ++i) {
    const Model& m = models[i];
    row.of[i] = {form.of[i].sent, factor * (ranks - 1) * m.batch * m.sequence * m.hidden * bytes};
  }
  return row;
}

/// `whole` + `split` b s h bytes on every rank and over all ranks, `scores` a s^2 b over all, and the statistics of two
/// norms of `rows` copies of the sequence, 16 bytes each.
template <class Form>
Row saves(const Measured<Form>& form, std::string name, std::string text, std::uint64_t whole, std::uint64_t split,
          std::uint64_t scores, std::uint64_t rows) {
  Row row{std::move(name), std::move(text), {}, {ranks, ranks}};
  for (std::size_t i = 0; i < model_count; ++i) {
    const Model& m = models[i];
    const std::uint64_t tokens = m.batch * m.sequence;
    row.of[i] = {form.of[i].saved, (whole * ranks + split) * tokens * m.hidden +
                                       scores * m.heads * m.sequence * tokens + 16 * rows * tokens};
  }
  return row;
}

}  // namespace

Table layers() {
  const Measured<Plain> plain, one(data);
  const Measured<Sequence> sequence;
  const Measured<Selective> selective;
  const Measured<Full> full;
  const Measured<BlockForm> kept;
  Table table{"Tensor and sequence parallelism", "bytes per layer, micro-batch and rank", {}};
  auto& rows = table.rows;
  rows.push_back(sends(plain, "tensor parallelism, sent", "8(t-1)/t b s h β", 8));
  rows.push_back(sends(kept, "sequence parallelism, gathered inputs saved, sent", "8(t-1)/t b s h β", 8));
  rows.push_back(sends(sequence, "sequence parallelism, sent", "(8 + 2)(t-1)/t b s h β", 10));
  rows.push_back(sends(full, "the same, all computed again, sent", "(8 + 3)(t-1)/t b s h β", 11));
  rows.push_back(saves(one, "data parallelism, saved", "b/n (s h (34 + 5 a s/h) + 16 s)", 0, 34, 5, 1));
  rows.push_back(
      saves(plain, "tensor parallelism, saved", "s b h (10 + 24/t + 5 a s/(h t)) + 16 s b", 10, 24, 5, ranks));
  rows.push_back(saves(sequence, "sequence parallelism, saved", "(s b h (34 + 5 a s/h) + 16 s b)/t", 0, 34, 5, 1));
  rows.push_back(saves(selective, "the same, attention computed again, saved", "(34 s b h + 16 s b)/t", 0, 34, 0, 1));
  rows.push_back(saves(full, "the same, all computed again, saved", "2 s b h/t", 0, 2, 0, 0));
  return table;
}

}  // namespace volumes
