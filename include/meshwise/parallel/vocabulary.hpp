// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "meshwise/core/detail/pack_math.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/detail/places.hpp"
#include "meshwise/tensor/elementwise.hpp"
#include "meshwise/tensor/lookup.hpp"
#include "meshwise/tensor/reductions.hpp"
#include "meshwise/tensor/value.hpp"

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
auto vocabulary_embedding_backward(const G& dy, const Table& table, const Ids& ids) {
  using Rows = typename detail::lookup_of<V, Table, Ids>::is;
  return lookup_backward<V>(backward_to<Rows>(dy), table, ids);
}
template <Dim V, AnyTensor Table, AnyTensor Ids, AnyTensor G>
  requires(!detail::is_accepted<detail::backward_through<detail::lookup_of<V, Table, Ids>, G>>)
auto vocabulary_embedding_backward(const G& dy, const Table& table, const Ids& ids)
    -> detail::backward_through<detail::lookup_of<V, Table, Ids>, G>;

namespace detail {

struct DividedBy {
  static constexpr bool has_packs = true;
  template <class P>
  P of_packs(const P& a, const P& b) const {
    return a / b;
  }
};

/// convert<Replicate<A>...> for a list of axes.
template <class T, class... As>
auto make_whole(T x, list<As...>) {
  return convert<Replicate<As>...>(std::move(x));
}

}  // namespace detail

namespace detail {

/// The verdict on the loss of logits and labels.
template <class V, class Logits, class Labels>
using cross_entropy_of = both_of<map_of_reals<Logits>, pick_of<V, Logits, Labels>>;

}  // namespace detail

/// What labels mean.
struct LabelOptions {
  /// The target of a token is (1 - smoothing) at its label and smoothing / V on each of the V entries of the whole
  /// vocabulary, the label included; in [0, 1].
  double smoothing = 0;
  /// Tokens with this label, inside of the vocabulary or not, have no loss and no gradient: padding, say.
  std::optional<std::int64_t> ignored{};
};

/// What cross_entropy returns: the loss and what its backward needs.
template <class Loss, class Probabilities>
struct CrossEntropy {
  Loss loss;                    ///< the sum of this mesh's token losses / count: Partial over the axes of the tokens
  Probabilities probabilities;  ///< like the logits
  double count = 1;
  LabelOptions options{};
};

namespace detail {

template <class Id>
bool is_ignored(Id id, const LabelOptions& options) {
  return options.ignored.has_value() && std::cmp_equal(id, *options.ignored);
}

template <class Labels>
void check_labels(const char* verb, const Labels& labels, std::size_t entries, const LabelOptions& options) {
  const int rank = labels.mesh().world().rank();
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    fail(verb, "a smoothing in [0, 1]", std::to_string(options.smoothing), "0.1 is usual, 0 is none", rank);
  }
  if (labels.mesh().checks() == Checks::none) return;
  for (const auto id : labels.local()) {
    if (is_ignored(id, options) || (std::cmp_greater_equal(id, 0) && std::cmp_less(id, entries))) continue;
    fail(verb, "labels in [0, " + std::to_string(entries) + ")", std::to_string(id),
         "correct the labels, or say in the options that this one is ignored", rank);
  }
}

/// For each token the scores weighted by its target, as far as this rank has them; 0 if it is ignored.
template <class V, class Scores, class Labels>
auto target_scores(const Scores& scores, const Labels& labels, const LabelOptions& options) {
  using Result = typename pick_of<V, Scores, Labels>::is;
  using A = accumulate_t<typename Scores::element>;
  check_operands("cross_entropy", scores, labels);
  const A at_label = static_cast<A>(1.0 - options.smoothing);
  const A at_all = static_cast<A>(options.smoothing / static_cast<double>(scores.template extent<V>()));
  Result result(scores.mesh(), labels.extents());
  const LocalPlaces owned(scores.template positions<V>());
  auto* out = written(result);
  const auto* row = scores.local().data();
  for (const auto id : labels.local()) {
    if (!is_ignored(id, options)) {
      A score(0);
      const std::size_t at = owned.of(static_cast<std::size_t>(id));
      if (at < owned.size()) score = at_label * static_cast<A>(row[at]);
      if (options.smoothing != 0) {
        in_packs([&](auto width) { score += at_all * sum_packs<A>(width, owned.size(), Itself{}, row); });
      }
      *out = static_cast<typename Scores::element>(score);
    }
    ++out;
    row += owned.size();
  }
  return result;
}

/// The verdict on counting labels: a number that is owed over the axes that shard them.
template <class Labels>
consteval auto count_labels_verdict() {
  if constexpr (!selects<Labels>) {
    return type<not_integers<Labels>>{};
  } else if constexpr (!is_accepted<map_of<Labels>>) {
    return type<map_of<Labels>>{};
  } else {
    using Ones = Tensor<double, typename Labels::dims, typename Labels::layout, typename Labels::space>;
    return
        []<class... Ds>(list<Ds...>) { return type<reduce_of<Ones, Sum, Ds...>>{}; }(dims_of<typename Labels::dims>{});
  }
}
template <class Labels>
using count_labels_of = typename decltype(count_labels_verdict<operand<Labels>>())::is;

/// By what a sum is divided, as a factor; of nothing there is no mean, and no gradient.
inline double one_by(double count) { return count == 0 ? 0.0 : 1.0 / count; }

}  // namespace detail

/// How many labels are not ignored, of all ranks together: the count that the loss is divided by.
///
/// labels: integers of any layout without a Partial; those that several ranks hold count once. Cost: an all-reduce of a
/// number over the axes that shard them; none where nothing is ignored, because the extents say it. With several
/// micro-batches add their counts up first, and divide the loss of each by the sum: the mean of their means would weigh
/// a token by how few others its micro-batch has. Errors: refused for a Partial and for what is not an integer.
template <AnyTensor Labels>
  requires detail::is_accepted<detail::count_labels_of<Labels>>
[[nodiscard]] double count_labels(const Labels& labels, const LabelOptions& options) {
  if (!options.ignored.has_value()) return static_cast<double>(labels.size());
  typename detail::count_labels_of<Labels>::is count(labels.mesh(), {});
  double here = 0;
  for (const auto id : labels.local()) here += detail::is_ignored(id, options) ? 0 : 1;
  count.mutable_local()[0] = here;
  return [&]<class... Owed>(detail::list<Owed...>) {
    return value(convert<Replicate<detail::front<detail::axes_of<Owed>>>...>(std::move(count)));
  }(detail::partials_of<typename detail::count_labels_of<Labels>::is::layout>{});
}
template <AnyTensor Labels>
  requires(!detail::is_accepted<detail::count_labels_of<Labels>>)
auto count_labels(const Labels& labels, const LabelOptions& options) -> detail::count_labels_of<Labels>;

/// The cross-entropy of logits whose vocabulary may be split, without ever gathering them.
///
/// logits: [tokens..., V]; labels: integers [tokens...], placed like the logits on these dims. count: the global number
/// of tokens, by which the sum is divided once: those that are not ignored, of all ranks and micro-batches, see
/// count_labels. loss = sum of (log(sum of exp(z - max)) - (z_label - max)) / count, with the label's entry replaced by
/// the weighted ones if labels are smoothed; 0 for a count of 0, which is what a step with nothing but padding has.
/// Cost: over each axis that splits V three all-reduces of one number per token (max, sum, label); one tensor like the
/// logits. Finite logits do not overflow; those of ignored tokens may be anything. Errors: a label outside of V that is
/// not the ignored one; a smoothing outside of [0, 1]; refused for a Partial.
/// Source: arXiv 1909.08053, section 3; smoothing: Szegedy et al., arXiv 1512.00567, section 7.
template <Dim V, AnyTensor Logits, AnyTensor Labels>
  requires detail::is_accepted<detail::cross_entropy_of<V, Logits, Labels>>
auto cross_entropy(const Logits& logits, const Labels& labels, double count, const LabelOptions& options = {}) {
  using E = typename Logits::element;
  using split_over = detail::shard_axes<typename Logits::layout, V>;
  detail::check_labels("cross_entropy", labels, logits.template extent<V>(), options);
  const auto top = detail::make_whole(max<V>(logits), split_over{});
  auto shifted = logits - top;
  const auto target = detail::make_whole(detail::target_scores<V>(shifted, labels, options), split_over{});
  auto powers = detail::map_packs_of(std::move(shifted), [](const auto& z) { return math::exp(z); });
  const auto total = detail::make_whole(sum<V>(powers), split_over{});
  auto losses = zip(
      [](E t, E z) {
        using A = accumulate_t<E>;
        return static_cast<E>(math::log(static_cast<A>(t)) - static_cast<A>(z));
      },
      total, target);
  if (options.ignored.has_value()) {
    E* out = losses.mutable_local().data();
    for (const auto id : labels.local()) {
      if (detail::is_ignored(id, options)) *out = E(0);
      ++out;
    }
  }
  auto loss = [&]<class... Ds>(detail::list<Ds...>) {
    return sum<Ds...>(losses);
  }(detail::dims_of<typename Labels::dims>{});
  auto scaled = std::move(loss) * detail::one_by(count);
  auto probabilities =
      detail::zip_local<typename Logits::layout>("cross_entropy", std::move(powers), total, detail::DividedBy{});
  return CrossEntropy<decltype(scaled), decltype(probabilities)>{std::move(scaled), std::move(probabilities), count,
                                                                 options};
}

template <Dim V, AnyTensor Logits, AnyTensor Labels>
  requires(!detail::is_accepted<detail::cross_entropy_of<V, Logits, Labels>>)
auto cross_entropy(const Logits& logits, const Labels& labels, double count, const LabelOptions& options = {})
    -> detail::cross_entropy_of<V, Logits, Labels>;

namespace detail {

/// The verdict on the seed and the labels of the backward.
template <class V, class Loss, class Logits, class Labels, class Seed>
using cross_entropy_backward_of =
    both_of<cross_entropy_of<V, Logits, Labels>, alike_of<Seed, decltype(gradient_seed(std::declval<const Loss&>()))>>;

}  // namespace detail

/// The gradient of the logits: (probabilities - targets) * seed / count, and 0 for tokens that are ignored.
///
/// seed: gradient_seed(loss), or a scalar like it, made before `saved` is moved from; saved: what cross_entropy gave,
/// used up; labels: as given. The targets are those of the options that cross_entropy was given.
/// Result: placed like the logits. Cost: local only, in place.
template <Dim V, class Loss, class Logits, AnyTensor Labels, AnyTensor Seed>
  requires detail::is_accepted<detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>>
auto cross_entropy_backward(const Seed& seed, CrossEntropy<Loss, Logits> saved, const Labels& labels) {
  using E = typename Logits::element;
  using A = accumulate_t<E>;
  const LabelOptions& options = saved.options;
  const std::size_t entries = saved.probabilities.template extent<V>();
  detail::check_operands("cross_entropy_backward", saved.probabilities, labels);
  detail::check_labels("cross_entropy_backward", labels, entries, options);
  const A scale = static_cast<A>(seed.local()[0]) * static_cast<A>(detail::one_by(saved.count));
  const A at_label = static_cast<A>(1.0 - options.smoothing);
  const A at_all = static_cast<A>(options.smoothing == 0 ? 0 : options.smoothing / static_cast<double>(entries));
  Logits gradient = std::move(saved.probabilities);
  const detail::LocalPlaces owned(gradient.template positions<V>());
  E* row = gradient.mutable_local().data();
  for (const auto id : labels.local()) {
    if (detail::is_ignored(id, options)) {
      detail::fill(row, owned.size(), E(0));
    } else {
      const std::size_t at = owned.of(static_cast<std::size_t>(id));
      const A label = at < owned.size() ? static_cast<A>(row[at]) : A(0);
      detail::in_packs([&](auto width) {
        detail::map_packs(
            width, row, owned.size(),
            [&]<class P>(const P& probability) { return (probability - P(at_all)) * P(scale); }, row);
      });
      if (at < owned.size()) row[at] = static_cast<E>((label - (at_label + at_all)) * scale);
    }
    row += owned.size();
  }
  return gradient;
}
template <Dim V, class Loss, class Logits, AnyTensor Labels, AnyTensor Seed>
  requires(!detail::is_accepted<detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>>)
auto cross_entropy_backward(const Seed& seed, CrossEntropy<Loss, Logits> saved, const Labels& labels)
    -> detail::cross_entropy_backward_of<V, Loss, Logits, Labels, Seed>;

}  // namespace meshwise
