// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "meshwise/core/random.hpp"
#include "meshwise/parallel/transformer.hpp"
#include "meshwise/tensor/generate.hpp"

namespace gpt {

using namespace meshwise;

using Grid = Mesh<dp, cp, tp>;

/// Sizes of the model.
struct Sizes {
  std::size_t vocab = 256, sequence = 128, hidden = 128, heads = 4, head_dim = 32, ffn = 512, layers = 4;
};

/// The numbers of parameters that tp splits and that every rank along it has.
struct ParameterCounts {
  std::uint64_t split = 0;
  std::uint64_t whole = 0;
};
inline ParameterCounts count_block(const Sizes& s) {
  const std::uint64_t h = s.hidden, inner = s.heads * s.head_dim;
  return {3 * (h * inner + inner) + inner * h + h * s.ffn + s.ffn + s.ffn * h, 6 * h};
}
inline ParameterCounts count_outer(const Sizes& s) { return {s.vocab * s.hidden, (s.sequence + 2) * s.hidden}; }
inline ParameterCounts count_parameters(const Sizes& s) {
  const ParameterCounts outer = count_outer(s), block = count_block(s);
  return {outer.split + s.layers * block.split, outer.whole + s.layers * block.whole};
}
/// What one of t ranks along tp holds of a block, in bytes.
template <class E>
std::size_t bytes_of_block(const Sizes& s, int t) {
  const ParameterCounts n = count_block(s);
  return static_cast<std::size_t>(n.split / static_cast<std::uint64_t>(t) + n.whole) * sizeof(E);
}

/// Every rank along cp has two parts of a sequence, an early and a late one, so that causal attention is the same work
/// for all.
using Tokens = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<batch, dp>, Shard<seq, Zigzag<cp>>>>;

/// Sequences, and the tokens that follow theirs.
struct Batch {
  Tokens inputs, targets;
};

/// What the model has for each parameter outside of its blocks (see BlockOf). The embedding is also the output
/// projection. Positions go by their global index, so that every rank looks up its own wherever the sequence is cut.
template <template <class> class Of, class E>
struct OuterOf {
  Of<Tensor<E, Dims<vocab, hidden>, Layout<Grid, Shard<vocab, tp>>>> embedding;
  Of<Tensor<E, Dims<seq, hidden>, Layout<Grid>>> position;
  Of<Tensor<E, Dims<hidden>, Layout<Grid>>> final_gain, final_bias;
};

/// Calls f(name, member of a, member of b, ...) for every parameter of a block, in one fixed order; the structures
/// correspond.
template <class F, class... Blocks>
void each_of_block(std::size_t layer, const F& f, Blocks&&... b) {
  const std::string prefix = "layer" + std::to_string(layer) + ".";
  f(prefix + "norm1.gain", b.norm1_gain...);
  f(prefix + "norm1.bias", b.norm1_bias...);
  f(prefix + "query.weight", b.query_weight...);
  f(prefix + "query.bias", b.query_bias...);
  f(prefix + "key.weight", b.key_weight...);
  f(prefix + "key.bias", b.key_bias...);
  f(prefix + "value.weight", b.value_weight...);
  f(prefix + "value.bias", b.value_bias...);
  f(prefix + "output.weight", b.output_weight...);
  f(prefix + "output.bias", b.output_bias...);
  f(prefix + "norm2.gain", b.norm2_gain...);
  f(prefix + "norm2.bias", b.norm2_bias...);
  f(prefix + "up.weight", b.up_weight...);
  f(prefix + "up.bias", b.up_bias...);
  f(prefix + "down.weight", b.down_weight...);
  f(prefix + "down.bias", b.down_bias...);
}
inline constexpr std::size_t parameters_of_block = 16;

/// The same for those outside of the blocks.
template <class F, class... Outers>
void each_outer(const F& f, Outers&&... o) {
  f(std::string("embedding"), o.embedding...);
  f(std::string("position"), o.position...);
  f(std::string("final.gain"), o.final_gain...);
  f(std::string("final.bias"), o.final_bias...);
}

/// Weights decay, biases and gains do not.
inline bool is_weight(const std::string& name) {
  return name == "embedding" || name == "position" || name.find(".weight") != std::string::npos;
}

/// The value of an element of a parameter before the first step: of its name, its number in the order of the model, and
/// its global index, so that it is the same in every layout.
using Initial = std::function<double(const std::string& name, std::size_t number, std::uint64_t index)>;

/// Weights are normal, gains 1, biases 0. The projections that end in the residual stream start smaller, so that its
/// variance does not grow with depth.
inline Initial initial_values(const Sizes& sizes, std::uint64_t seed) {
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers));
  return [=](const std::string& name, std::size_t number, std::uint64_t index) {
    if (!is_weight(name)) return name.ends_with("gain") ? 1.0 : 0.0;
    const bool ends = name.ends_with("output.weight") || name.ends_with("down.weight");
    return (ends ? residual : 0.02) * normal(stream_seed(seed, number), index);
  };
}

/// Makes the parameters, a block at a time.
template <class E>
class Maker {
 public:
  Maker(const Grid& mesh, const Sizes& sizes, Initial initial)
      : mesh_(mesh), sizes_(sizes), initial_(std::move(initial)) {}

  OuterOf<Value, E> outer() const {
    const Sizes& s = sizes_;
    using O = OuterOf<Value, E>;
    O all{{mesh_, {s.vocab, s.hidden}}, {mesh_, {s.sequence, s.hidden}}, {mesh_, {s.hidden}}, {mesh_, {s.hidden}}};
    const std::size_t last = 2 + parameters_of_block * s.layers;
    std::size_t n = 0;
    each_outer([&](const std::string& name, auto& p) { fill(name, n < 2 ? n : last + n - 2, p), ++n; }, all);
    return all;
  }

  BlockOf<Value, E, Grid> block(std::size_t layer) const {
    const Sizes& s = sizes_;
    const Extents<Dims<hidden>> wide{s.hidden};
    const Extents<Dims<hidden, heads, head_dim>> in{s.hidden, s.heads, s.head_dim};
    const Extents<Dims<heads, head_dim>> per_head{s.heads, s.head_dim};
    BlockOf<Value, E, Grid> all{{{mesh_, wide},
                                 {mesh_, wide},
                                 {mesh_, {s.heads, s.head_dim, s.hidden}},
                                 {mesh_, wide},
                                 {mesh_, wide},
                                 {mesh_, wide},
                                 {mesh_, {s.hidden, s.ffn}},
                                 {mesh_, {s.ffn}},
                                 {mesh_, {s.ffn, s.hidden}},
                                 {mesh_, wide}},
                                {mesh_, in},
                                {mesh_, per_head},
                                {mesh_, in},
                                {mesh_, per_head},
                                {mesh_, in},
                                {mesh_, per_head}};
    std::size_t n = 2 + parameters_of_block * layer;
    each_of_block(
        layer, [&](const std::string& name, auto& p) { fill(name, n++, p); }, all);
    return all;
  }

 private:
  template <class T>
  void fill(const std::string& name, std::size_t number, T& parameter) const {
    parameter = generate<T>(mesh_, parameter.extents(), [&](const Index<typename T::dims>& i) {
      return static_cast<E>(initial_(name, number, i.linear));
    });
  }

  Grid mesh_;
  Sizes sizes_;
  Initial initial_;
};

}  // namespace gpt
