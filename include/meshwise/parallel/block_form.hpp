// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "meshwise/parallel/tensor.hpp"
#include "meshwise/tensor/detail/shared_heads.hpp"
#include "meshwise/tensor/dropout_mask.hpp"

namespace meshwise {

/// What a block computes again in its backward instead of saving it. Gradients have the same bits in any case.
enum class Recompute : std::uint8_t {
  none,       ///< nothing but what `Gathered` and `Masks` say
  selective,  ///< scores, soft-max and dropout of the attention, from queries and keys
  full,       ///< all: the input alone is saved, and the forward runs again with its collectives up to the last product
};

/// Whether sequence parallelism keeps the gathered inputs of its linear layers, or the shards that they came from, to
/// gather them once more during the backward: 2 (t-1)/t b s h elements more per block, 4 b s h (1 - 1/t) fewer saved.
enum class Gathered : std::uint8_t { kept, again };

/// Whether the choices of dropout are drawn again from their seeds, or kept with what was dropped: a byte each, and
/// dropped probabilities.
enum class Masks : std::uint8_t { replayed, kept };

/// Axes, with their split rules if these are not the usual one; the first is major.
template <ShardEntry... Entries>
struct Along {};

/// Every head has its own keys and values: multi-head attention.
struct EachHead {};

/// Groups of neighbouring heads share keys and values: the dim `kv`, split over the first ones of the axes that split
/// the heads, replicated over the others, and over all if none is named. With more ranks than such heads: a mesh of two
/// tensor axes, `Along<kx, qx>` for heads and ffn, and `SharedHeads<Along<kx>>`. Ranks along qx hold the same keys and
/// other queries; the gradients of key and value weights owe a sum over it, as their types say.
template <class Axes>
struct SharedHeads {};

struct SeparateProjections;
struct GeluMlp;
struct CausalScores;

/// Which parameters a block has and how they are split. Derive from it and replace what differs.
struct BlockShape {
  using tensor = Along<tp>;                ///< the axes that split heads and ffn
  using keys = EachHead;                   ///< or SharedHeads
  using projection = SeparateProjections;  ///< of queries, keys and values; or FusedProjection (fused_projection.hpp)
  using mlp = GeluMlp;                     ///< or GatedMlp (gated_mlp.hpp)
};

/// What a block does with its activations. Derive from it and replace what differs:
/// `struct Mine : BlockForm { static constexpr auto recompute = Recompute::full; };`.
struct BlockForm {
  using shape = BlockShape;
  /// The axes that split the batch.
  using data = Along<dp>;
  /// What splits the sequence everywhere, such as `Along<Zigzag<cp>>` beside RingAttention<cp>.
  using sequence = Along<>;
  /// Whether the tensor axes split the sequence between blocks; else activations are replicated there.
  static constexpr bool sequence_parallel = true;
  static constexpr Recompute recompute = Recompute::none;
  static constexpr Gathered gathered = Gathered::kept;
  static constexpr Masks masks = Masks::replayed;
  using attention = CausalScores;  ///< or TiledAttention, RingAttention (tiled_attention.hpp)
};

namespace detail {

template <class Axes>
struct entries_over;
template <class... Es>
struct entries_over<Along<Es...>> {
  using is = list<Es...>;
};
template <class Axes>
using entries_in = typename entries_over<Axes>::is;

/// A tensor whose layout is that of some lists of placements.
template <class E, class D, class Grid, class... Lists>
using placed_by = Tensor<E, D, typename decltype(canonical_from<Grid>(join<Lists...>{}))::is>;

template <class D, class Axes>
using sharded_over = shard_list<D, entries_in<Axes>>;

/// The conversions of a block over the axes that split heads and ffn.
template <class Axes, bool sequence_parallel>
struct TensorConversions;
template <class... As>
struct TensorConversions<Along<As...>, true> {
  // The minor axis first, as convert wants it; it is one step all the same.
  template <class T>
  static auto gathered(const T& x) {
    return [&x]<class... Ps>(list<Ps...>) { return convert<Ps...>(x); }(replicate_each(reversed(list<As...>{})));
  }
  template <class T>
  static auto start_gathered(const T& x) {
    return [&x]<class... Ps>(list<Ps...>) { return started<Ps...>(x); }(replicate_each(reversed(list<As...>{})));
  }
  template <class T>
  static auto reduced(T&& x) {
    return convert<Shard<seq, As...>>(std::forward<T>(x));
  }
  template <class T>
  static auto start_reduced(T&& x) {
    return started<Shard<seq, As...>>(std::forward<T>(x));
  }
};
template <class... As>
struct TensorConversions<Along<As...>, false> {
  template <class T>
  static const T& gathered(const T& x) {
    return x;
  }
  template <class T>
  static auto reduced(T&& x) {
    return convert<Replicate<As>...>(std::forward<T>(x));
  }
  template <class T>
  static auto start_reduced(T&& x) {
    return started<Replicate<As>...>(std::forward<T>(x));
  }
};

/// The choice of one dropout, as a function of what is dropped: drawn again each time, or kept.
template <class T, Masks>
class SavedDropout;
template <class T>
class SavedDropout<T, Masks::replayed> {
 public:
  SavedDropout(const T&, double p, std::uint64_t seed) : p_(p), seed_(seed) {}
  template <class X>
  auto operator()(X&& x) const {
    return dropout(std::forward<X>(x), p_, seed_);
  }

 private:
  double p_;
  std::uint64_t seed_;
};
template <class T>
class SavedDropout<T, Masks::kept> {
 public:
  SavedDropout(const T& like, double p, std::uint64_t seed) : p_(p) {
    if (p != 0) mask_.emplace(dropout_mask(like, p, seed));
  }
  template <class X>
  bare<X> operator()(X&& x) const {
    if (!mask_) return bare<X>(std::forward<X>(x));
    return dropout(std::forward<X>(x), p_, *mask_);
  }

 private:
  double p_;
  std::optional<DropoutMask<T>> mask_;
};

/// In place of what is not saved.
struct NotSaved {};

/// Something of queries, keys and values.
template <class Q, class K, class V>
struct QueryKeyValue {
  Q q;
  K k;
  V v;
};

}  // namespace detail
}  // namespace meshwise
