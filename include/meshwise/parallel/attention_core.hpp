// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "meshwise/parallel/block_form.hpp"
#include "meshwise/tensor/attention.hpp"
#include "meshwise/tensor/softmax.hpp"

namespace meshwise {

/// Dropout of attention probabilities, of one block and step.
struct ScoreDrop {
  double p = 0;
  std::uint64_t seed = 0;
};

namespace detail {

/// A product of heads, each with its own of b or the one that it shares.
template <class ResultDims, class A, class B>
auto by_heads(const A& a, const B& b) {
  if constexpr (contains<kv, dims_of<typename B::dims>>) {
    return shared_einsum<ResultDims, heads, kv>(a, b);
  } else {
    return einsum<ResultDims>(a, b);
  }
}
/// The gradient at keys or values.
template <class A, class B, class Value>
auto at_keys(const A& a, const B& b, const Value& value) {
  if constexpr (contains<kv, dims_of<typename Value::dims>>) {
    return shared_gradient<heads, kv>(a, b, value);
  } else {
    return einsum<typename Value::dims>(a, b);
  }
}

template <class Q, class K, Recompute R, Masks M>
struct ScoresCore {
  using Scores =
      decltype(by_heads<Dims<batch, heads, seq, key<seq>>>(std::declval<const Q&>(), std::declval<const K&>()));
  static constexpr bool again = R == Recompute::selective;
  static constexpr Masks masks = again ? Masks::replayed : M;
  struct Probabilities {
    Scores p;
    SavedDropout<Scores, masks> drop;
    std::conditional_t<masks == Masks::kept, Scores, NotSaved> dropped;
  };
  using Saved = std::conditional_t<again, NotSaved, Probabilities>;

  static std::pair<Q, Saved> forward(const Q& q, const K& k, const K& v, double factor, const ScoreDrop& drop) {
    Probabilities s = probabilities(q, k, factor, drop);
    Q out = by_heads<typename Q::dims>(dropped(s), v);
    if constexpr (again) {
      return {std::move(out), NotSaved{}};
    } else {
      return {std::move(out), std::move(s)};
    }
  }

  static auto backward(const Q& dout, const Q& q, const K& k, const K& v, const Saved& saved, double factor,
                       const ScoreDrop& drop) {
    if constexpr (again) {
      return reverse(dout, q, k, v, probabilities(q, k, factor, drop), factor);
    } else {
      return reverse(dout, q, k, v, saved, factor);
    }
  }

 private:
  static Probabilities probabilities(const Q& q, const K& k, double factor, const ScoreDrop& drop) {
    Scores p = causal_softmax<seq>(by_heads<typename Scores::dims>(q, k), factor);
    SavedDropout<Scores, masks> choice(p, drop.p, drop.seed);
    if constexpr (masks == Masks::kept) {
      Scores dropped = choice(p);
      return {std::move(p), std::move(choice), std::move(dropped)};
    } else {
      return {std::move(p), std::move(choice), NotSaved{}};
    }
  }
  static Scores dropped(const Probabilities& s) {
    if constexpr (masks == Masks::kept) {
      return s.dropped;
    } else {
      return s.drop(s.p);
    }
  }
  static auto reverse(const Q& dout, const Q& q, const K& k, const K& v, const Probabilities& s, double factor) {
    const Scores ds = softmax_backward<key<seq>>(s.drop(by_heads<typename Scores::dims>(dout, v)), s.p, factor);
    auto dq = by_heads<typename Q::dims>(ds, k);
    auto dk = at_keys(ds, q, k);
    auto dv = at_keys(dropped(s), dout, v);
    return QueryKeyValue<decltype(dq), decltype(dk), decltype(dv)>{std::move(dq), std::move(dk), std::move(dv)};
  }
};

}  // namespace detail

/// Causal attention by a matrix of all scores: soft-max, dropout of its probabilities, and the sum of values.
///
/// An attention of a block (BlockForm::attention) is a type with `Core<Q, K, Recompute, Masks>`, which has `Saved`, a
/// static `forward(q, k, v, factor, ScoreDrop)` that gives the result and a Saved, and a static `backward(dout, q, k,
/// v, saved, factor, ScoreDrop)` that gives the gradients as `.q`, `.k` and `.v`. k and v have the dim key<seq>, and
/// heads or kv. Saves per head s^2 probabilities, nothing if they are recomputed; with masks that are kept also the
/// dropped ones and a byte each. Needs whole keys: key<seq> is not split. Cost: six matrix products with the backward.
struct CausalScores {
  template <class Q, class K, Recompute R, Masks M>
  using Core = detail::ScoresCore<Q, K, R, M>;
};

}  // namespace meshwise
