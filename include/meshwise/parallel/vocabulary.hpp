// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/lookup.hpp"
#include "meshwise/tensor/reductions.hpp"

namespace meshwise {

/// Rows of an embedding table whose vocabulary is split, brought to the layout `To`.
///
/// To: `Replicate<tp>` or `Shard<seq, tp>`. table: [V, width...] with `Shard<V, tp>`; ids: integers. Cost: one
/// conversion of the result. Source: arXiv 1909.08053, section 3.
template <Placement To, Dim V, AnyTensor Table, AnyTensor Ids>
  requires detail::is_accepted<detail::converted_of<detail::lookup_of<V, Table, Ids>, To>>
auto vocabulary_embedding(const Table& table, const Ids& ids) { return convert<To>(lookup<V>(table, ids)); }
template <Placement To, Dim V, AnyTensor Table, AnyTensor Ids>
  requires(!detail::is_accepted<detail::converted_of<detail::lookup_of<V, Table, Ids>, To>>)
auto vocabulary_embedding(const Table& table, const Ids& ids)
    -> detail::converted_of<detail::lookup_of<V, Table, Ids>, To>;

/// The gradient of the table: split like it, Partial over the axes that shard the ids.
///
/// dy: placed like the result. Cost: the backward of the conversion (an all-gather where it was a reduce-scatter).
template <Dim V, AnyTensor Table, AnyTensor Ids, AnyTensor G>
  requires detail::is_accepted<detail::backward_through<detail::lookup_of<V, Table, Ids>, G>>
auto vocabulary_embedding_backward(const Table& table, const Ids& ids, const G& dy) {
  using Rows = typename detail::lookup_of<V, Table, Ids>::is;
  return lookup_backward<V>(table, ids, backward_to<Rows>(dy));
}
template <Dim V, AnyTensor Table, AnyTensor Ids, AnyTensor G>
  requires(!detail::is_accepted<detail::backward_through<detail::lookup_of<V, Table, Ids>, G>>)
auto vocabulary_embedding_backward(const Table& table, const Ids& ids, const G& dy)
    -> detail::backward_through<detail::lookup_of<V, Table, Ids>, G>;

namespace detail {

/// convert<Replicate<A>...> for a list of axes.
template <class T, class... As>
auto make_whole(T x, list<As...>) {
  return convert<Replicate<As>...>(std::move(x));
}

}  // namespace detail

/// What cross_entropy returns: the loss and what its backward needs.
template <class Loss, class Probabilities>
struct CrossEntropy {
  Loss loss;                    ///< the sum of this mesh's token losses / count: Partial over the axes of the tokens
  Probabilities probabilities;  ///< like the logits
  double count = 1;
};

/// The cross-entropy of logits whose vocabulary may be split, without ever gathering them.
///
/// logits: [tokens..., V]; labels: integers [tokens...], placed like the logits on these dims. count: the global number
/// of tokens, by which the sum is divided once. loss = sum of (log(sum of exp(z - max)) - (z_label - max)) / count.
/// Cost: over each axis that splits V three all-reduces of one number per token (max, sum, label); one tensor like the
/// logits. Finite logits do not overflow. Errors: a label outside of V; refused for a Partial.
/// Source: arXiv 1909.08053, section 3.
template <Dim V, AnyTensor Logits, AnyTensor Labels>
  requires detail::is_accepted<detail::pick_of<V, Logits, Labels>>
auto cross_entropy(const Logits& logits, const Labels& labels, double count) {
  using E = typename Logits::element;
  using split_over = detail::shard_axes<typename Logits::layout, V>;
  const auto top = detail::make_whole(max<V>(logits), split_over{});
  auto shifted = logits - top;
  const auto label = detail::make_whole(pick<V>(shifted, labels), split_over{});
  auto powers = map([](E z) { return static_cast<E>(math::exp(static_cast<accumulate_t<E>>(z))); }, std::move(shifted));
  const auto total = detail::make_whole(sum<V>(powers), split_over{});
  const auto losses = zip(
      [](E t, E z) {
        using A = accumulate_t<E>;
        return static_cast<E>(std::log(static_cast<A>(t)) - static_cast<A>(z));
      },
      total, label);
  auto loss = [&]<class... Ds>(detail::list<Ds...>) {
    return sum<Ds...>(losses);
  }(detail::dims_of<typename Labels::dims>{});
  auto scaled = std::move(loss) * (1.0 / count);
  auto probabilities = zip([](E p, E t) { return static_cast<E>(p / t); }, std::move(powers), total);
  return CrossEntropy<decltype(scaled), decltype(probabilities)>{std::move(scaled), std::move(probabilities), count};
}

template <Dim V, AnyTensor Logits, AnyTensor Labels>
  requires(!detail::is_accepted<detail::pick_of<V, Logits, Labels>>)
auto cross_entropy(const Logits& logits, const Labels& labels, double count) -> detail::pick_of<V, Logits, Labels>;

namespace detail {

/// The verdict on the seed and the labels of the backward.
template <class V, class Loss, class Logits, class Labels, class Seed>
using cross_entropy_backward_of =
    both_of<pick_of<V, Logits, Labels>, alike_of<Seed, decltype(gradient_seed(std::declval<const Loss&>()))>>;

}  // namespace detail

/// The gradient of the logits: (probabilities - one at the label) * seed / count.
///
/// saved: what cross_entropy returned, used up; labels: as given; seed: gradient_seed(loss), or a scalar like it.
/// Result: placed like the logits. Cost: local only, in place.
template <Dim V, class Loss, class Logits, AnyTensor Labels, AnyTensor Seed>
  requires detail::is_accepted<detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>>
auto cross_entropy_backward(CrossEntropy<Loss, Logits> saved, const Labels& labels, const Seed& seed) {
  using E = typename Logits::element;
  using A = accumulate_t<E>;
  detail::check_operands("cross_entropy_backward", saved.probabilities, labels);
  detail::check_ids("cross_entropy_backward", labels, saved.probabilities.template extent<V>());
  const A scale = static_cast<A>(seed.local()[0]) * static_cast<A>(1.0 / saved.count);
  Logits gradient = std::move(saved.probabilities);
  const detail::LocalPlaces owned(gradient.template positions<V>());
  E* row = gradient.mutable_local().data();
  for (const auto id : labels.local()) {
    const std::size_t at = owned.of(static_cast<std::size_t>(id));
    if (at < owned.size()) row[at] = static_cast<E>(static_cast<A>(row[at]) - A(1));
    for (std::size_t i = 0; i < owned.size(); ++i) row[i] = static_cast<E>(static_cast<A>(row[i]) * scale);
    row += owned.size();
  }
  return gradient;
}
template <Dim V, class Loss, class Logits, AnyTensor Labels, AnyTensor Seed>
  requires(!detail::is_accepted<detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>>)
auto cross_entropy_backward(CrossEntropy<Loss, Logits> saved, const Labels& labels, const Seed& seed)
    -> detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>;

}  // namespace meshwise
