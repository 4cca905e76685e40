// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "meshwise/core/random.hpp"
#include "meshwise/parallel/transformer.hpp"
#include "meshwise/parallel/vocabulary.hpp"
#include "meshwise/tensor/accumulate.hpp"
#include "meshwise/tensor/generate.hpp"

namespace gpt {

using namespace meshwise;

using Grid = Mesh<dp, tp>;

/// Sizes of the model.
struct Sizes {
  std::size_t vocab = 256, sequence = 128, hidden = 128, heads = 4, head_dim = 32, ffn = 512, layers = 4;
};

/// What the model has for each parameter (see BlockOf). The embedding is also the output projection.
template <template <class> class Of, class E>
struct ModelOf {
  Of<Tensor<E, Dims<vocab, hidden>, Layout<Grid, Shard<vocab, tp>>>> embedding;
  Of<Tensor<E, Dims<seq, hidden>, Layout<Grid, Shard<seq, tp>>>> position;
  std::vector<BlockOf<Of, E, Grid>> blocks;
  Of<Tensor<E, Dims<hidden>, Layout<Grid>>> final_gain, final_bias;
};

/// Calls f(name, member of a, member of b, ...) for every parameter, in one fixed order; the structures correspond.
template <class F, class... Blocks>
void each_of_block(const std::string& prefix, const F& f, Blocks&... b) {
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
template <class F, class First, class... Models>
void each(const F& f, First& first, Models&... rest) {
  f(std::string("embedding"), first.embedding, rest.embedding...);
  f(std::string("position"), first.position, rest.position...);
  for (std::size_t l = 0; l < first.blocks.size(); ++l) {
    each_of_block("layer" + std::to_string(l) + ".", f, first.blocks[l], rest.blocks[l]...);
  }
  f(std::string("final.gain"), first.final_gain, rest.final_gain...);
  f(std::string("final.bias"), first.final_bias, rest.final_bias...);
}

/// Weights decay, biases and gains do not.
inline bool is_weight(const std::string& name) {
  return name == "embedding" || name == "position" || name.find(".weight") != std::string::npos;
}

/// The model: a pre-norm GPT, explicit forward and backward, every communication a conversion.
template <class E>
struct Model {
  using Block = TransformerBlock<E, Grid>;
  using Parameters = ModelOf<Value, E>;
  using Gradients = ModelOf<OwedGradient, E>;
  using Tokens = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<batch, dp>>>;
  using X = typename Block::X;
  using Full = typename Block::Full;
  using Logits = typename Block::template Act<Dims<batch, seq, vocab>, Shard<vocab, tp>>;
  using Loss = CrossEntropy<Tensor<E, Dims<>, Layout<Grid, Partial<dp>>>, Logits>;

  struct Saved {
    std::vector<typename Block::Saved> blocks;
    X last;
    typename Block::Norm norm;
    Full full;
  };
  /// Dropout of one step: each site draws from a stream of its own.
  struct Drop {
    double p = 0;
    std::uint64_t seed = 0;  ///< another one for every step

    typename Block::Drop in_block(std::size_t l) const {
      return {p, stream_seed(seed, 1 + 2 * l), stream_seed(seed, 2 + 2 * l)};
    }
    std::uint64_t embedding_seed() const { return stream_seed(seed, 0); }
  };

  /// Parameters drawn from (seed, position in the order of `each`, global index): the same for every layout.
  static Parameters make(const Grid& mesh, const Sizes& s, std::uint64_t seed) {
    const CategoryScope scope(mesh.memory(), Category::parameters);
    const auto zeros = [&]<class T>(const Extents<typename T::dims>& e) { return T(mesh, e); };
    using B = BlockOf<Value, E, Grid>;
    using V = typename B::Vector;
    using P = typename B::Projection;
    using PB = typename B::ProjectionBias;
    const auto v = [&] { return zeros.template operator()<V>({s.hidden}); };
    const auto p = [&] { return zeros.template operator()<P>({s.hidden, s.heads, s.head_dim}); };
    const auto pb = [&] { return zeros.template operator()<PB>({s.heads, s.head_dim}); };
    Parameters all{zeros.template operator()<decltype(Parameters::embedding)>({s.vocab, s.hidden}),
                   zeros.template operator()<decltype(Parameters::position)>({s.sequence, s.hidden}),
                   {},
                   v(),
                   v()};
    for (std::size_t l = 0; l < s.layers; ++l) {
      all.blocks.push_back(B{v(), v(), p(), pb(), p(), pb(), p(), pb(),
                             zeros.template operator()<decltype(B::output_weight)>({s.heads, s.head_dim, s.hidden}),
                             v(), v(), v(), zeros.template operator()<decltype(B::up_weight)>({s.hidden, s.ffn}),
                             zeros.template operator()<decltype(B::up_bias)>({s.ffn}),
                             zeros.template operator()<decltype(B::down_weight)>({s.ffn, s.hidden}), v()});
    }
    // The projections that end in the residual stream start smaller, so that its variance does not grow with depth.
    const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers == 0 ? 1 : s.layers));
    std::uint64_t stream = 0;
    each(
        [&]<class T>(const std::string& name, T& parameter) {
          const std::uint64_t own = stream_seed(seed, stream++);
          const bool ends =
              name.find("output.weight") != std::string::npos || name.find("down.weight") != std::string::npos;
          if (is_weight(name)) {
            const double deviation = ends ? residual : 0.02;
            parameter = generate<T>(mesh, parameter.extents(), [&](const Index<typename T::dims>& i) {
              return static_cast<E>(deviation * normal(own, i.linear));
            });
          } else if (name.find("gain") != std::string::npos) {
            parameter = generate<T>(mesh, parameter.extents(), [](const auto&) { return E(1); });
          }
        },
        all);
    return all;
  }

  static std::pair<Logits, Saved> forward(const Parameters& w, const Tokens& tokens, const Drop& drop) {
    X x = vocabulary_embedding<Shard<seq, tp>, vocab>(w.embedding, tokens) + w.position;
    x = dropout(std::move(x), drop.p, drop.embedding_seed());
    std::vector<typename Block::Saved> saved;
    for (std::size_t l = 0; l < w.blocks.size(); ++l) {
      auto [y, kept] = Block::forward(w.blocks[l], x, drop.in_block(l));
      x = std::move(y);
      saved.push_back(std::move(kept));
    }
    auto norm = layer_norm(x, w.final_gain, w.final_bias);
    Full full = convert<Replicate<tp>>(norm.y);
    Logits logits = contract<hidden>(full, w.embedding);
    return {std::move(logits), Saved{std::move(saved), std::move(x), std::move(norm), std::move(full)}};
  }

  /// count: the global number of tokens that the loss is the mean over.
  static Loss loss(const Logits& logits, const Tokens& targets, double count) {
    return cross_entropy<vocab>(logits, targets, count);
  }

  static Gradients backward(const Parameters& w, Saved saved, const Tokens& tokens, const Tokens& targets, Loss loss,
                            const Drop& drop) {
    const auto seed = gradient_seed(loss.loss);
    const Logits dlogits = cross_entropy_backward<vocab>(seed, std::move(loss), targets);
    Gradients g;
    g.blocks.resize(w.blocks.size());
    g.embedding = einsum<Dims<vocab, hidden>>(dlogits, saved.full);
    const auto dnorm = layer_norm_backward(backward_to<X>(contract<vocab>(dlogits, w.embedding)), saved.last,
                                           saved.norm, w.final_gain);
    g.final_gain = dnorm.gain;
    g.final_bias = dnorm.bias;
    X dx = dnorm.x;
    for (std::size_t l = w.blocks.size(); l-- > 0;) {
      auto [next, gradients] = Block::backward(w.blocks[l], saved.blocks[l], dx, drop.in_block(l));
      dx = std::move(next);
      g.blocks[l] = std::move(gradients);
      saved.blocks.pop_back();
    }
    dx = dropout(std::move(dx), drop.p, drop.embedding_seed());
    g.position = sum<batch>(dx);
    *g.embedding += vocabulary_embedding_backward<vocab>(dx, w.embedding, tokens);
    return g;
  }
};

}  // namespace gpt
