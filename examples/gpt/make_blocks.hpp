// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "blocks.hpp"
#include "meshwise/parallel/tiled_attention.hpp"
#include "meshwise/parallel/transformer.hpp"

namespace gpt {

/// Attention by a matrix of scores, of keys and values that are gathered along cp: with one rank there, plain attention.
struct GatheredScores {
  template <class Q, class K, Recompute R, Masks M>
  struct Core {
    using Inner =
        typename CausalScores::template Core<Q, decltype(convert<Replicate<cp>>(std::declval<const K&>())), R, M>;
    using Saved = typename Inner::Saved;
    struct Gradients {
      Q q;
      K k, v;
    };

    static std::pair<Q, Saved> forward(const Q& q, const K& k, const K& v, double factor, const ScoreDrop& drop) {
      return Inner::forward(q, convert<Replicate<cp>>(k), convert<Replicate<cp>>(v), factor, drop);
    }
    static Gradients backward(const Q& dout, const Q& q, const K& k, const K& v, const Saved& saved, double factor,
                              const ScoreDrop& drop) {
      auto d = Inner::backward(dout, q, convert<Replicate<cp>>(k), convert<Replicate<cp>>(v), saved, factor, drop);
      return {std::move(d.q), backward_to<K>(std::move(d.k)), backward_to<K>(std::move(d.v))};
    }
  };
};

template <class Attention, Recompute again>
struct Form : BlockForm {
  using sequence = Along<Zigzag<cp>>;
  using attention = Attention;
  static constexpr Recompute recompute = again;
};

/// Blocks of one form.
template <class E, class F>
class BlocksOf final : public Blocks<E> {
  using Block = TransformerBlock<E, Grid, F>;
  using typename Blocks<E>::X;
  using typename Blocks<E>::Parameters;
  using typename Blocks<E>::Gradients;
  using typename Blocks<E>::Saved;
  struct Kept final : Saved {
    explicit Kept(typename Block::Saved&& all) : values(std::move(all)) {}
    typename Block::Saved values;
  };

 public:
  std::pair<X, std::unique_ptr<Saved>> forward(const Parameters& w, const X& x, const BlockDrop& drop) const override {
    auto [y, saved] = Block::forward(w, x, drop_of(drop));
    return {std::move(y), std::unique_ptr<Saved>(new Kept(std::move(saved)))};
  }
  std::pair<X, Gradients> backward(const Parameters& w, const Saved& saved, const X& dout,
                                   const BlockDrop& drop) const override {
    return Block::backward(w, static_cast<const Kept&>(saved).values, dout, drop_of(drop));
  }

 private:
  static typename Block::Drop drop_of(const BlockDrop& d) { return {d.p, d.attention_seed, d.mlp_seed, {}}; }
};

template <class E>
std::unique_ptr<Blocks<E>> make_blocks(Recomputed recompute, int context) {
  const auto of = []<class F>(std::type_identity<F>) { return std::unique_ptr<Blocks<E>>(new BlocksOf<E, F>); };
  if (context > 1) {
    // Attention in tiles has no scores to drop, so that selective is none.
    using Ring = RingAttention<cp>;
    if (recompute == Recomputed::full) return of(std::type_identity<Form<Ring, Recompute::full>>{});
    return of(std::type_identity<Form<Ring, Recompute::none>>{});
  }
  switch (recompute) {
    case Recomputed::selective: return of(std::type_identity<Form<GatheredScores, Recompute::selective>>{});
    case Recomputed::full: return of(std::type_identity<Form<GatheredScores, Recompute::full>>{});
    default: return of(std::type_identity<Form<GatheredScores, Recompute::none>>{});
  }
}

}  // namespace gpt
