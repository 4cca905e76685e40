// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "meshwise/core/math.hpp"
#include "meshwise/tensor/attended.hpp"
#include "meshwise/tensor/attention_mask.hpp"
#include "meshwise/tensor/detail/attention_piece.hpp"
#include "meshwise/tensor/detail/attention_verdict.hpp"

namespace meshwise::detail {

/// The elements of x in another float type.
template <class E, class From, class D, class L, class S>
Tensor<E, D, L, S> rounded_to(Tensor<From, D, L, S>&& x) {
  if constexpr (std::is_same_v<E, From>) {
    return std::move(x);
  } else {
    Tensor<E, D, L, S> result(x.mesh(), x.extents(), uninitialised{});
    convert_elements<From, E>(x.local().size(), x.local().data(), written(result));
    return result;
  }
}

/// The queries of this rank, and which keys they see.
template <class Q, class K, class Mask>
class AttentionQueries {
 public:
  using E = typename Q::element;
  using A = accumulate_t<E>;
  using Batch = without<seq, without<heads, without<head_dim, dims_of<typename Q::dims>>>>;
  using Numbers = rows_of<Q>;
  using Values = Tensor<A, typename Q::dims, typename Q::layout, typename Q::space>;

  template <class V>
  AttentionQueries(const char* verb, const Q& q, const K& k, const V& v, const Mask& mask, double factor)
      : q_(q), mask_(mask), factor_(static_cast<A>(factor)), positions_(q.template positions<seq>()) {
    check_operands(verb, q, k);
    check_operands<head_dim>(verb, k, v);
    blocks_ = head_blocks<heads, kv>(verb, q, by_shares(k));
    value_width_ = v.template extent<head_dim>();
    for (const auto& d : matrices(q, q.local().data()).batch) batches_ *= d.extent;
  }

  /// A zero for every query, or one for each of its columns of the result.
  Numbers numbers() const { return Numbers(q_.mesh(), extents_from<typename Numbers::dims>(q_)); }
  Values values() const {
    Extents<typename Q::dims> extents = q_.extents();
    extents[dim_index<head_dim, Q>] = value_width_;
    return Values(q_.mesh(), extents);
  }

  /// Something that has the rows of the queries, or the rows of keys, with these elements.
  template <class T, class Element>
  HeadMatrices<Element> matrices(const T& x, Element* data) const {
    return matrices_of<seq, head_dim, heads>(q_, x, data, Batch{});
  }
  template <class T, class Element>
  HeadMatrices<Element> key_matrices(const T& x, Element* data) const {
    return matrices_of<key<seq>, head_dim, share_of<K>>(q_, x, data, Batch{});
  }

  /// Calls f(piece, workspace) for keys and values with these global indices, unless nobody sees any of them.
  template <class KeyPiece, class ValuePiece, class F>
  void meet(const KeyPiece& k, const ValuePiece& v, const Positions& keys, bool backward, const F& f) const {
    const List<KeySpan> spans = spans_of(positions_, keys, mask_);
    const List<AttentionTile> tiles = tiles_of(spans, keys.size());
    if (tiles.empty() || batches_ == 0 || blocks_.empty()) return;
    const Gemm* gemm = q_.mesh().gemm();
    const AttentionPiece<E> piece{gemm != nullptr ? *gemm : plain_gemm(),
                                  factor_,
                                  batches_,
                                  q_.ranges()[dim_index<head_dim, Q>].size,
                                  value_width_,
                                  blocks_,
                                  spans,
                                  tiles,
                                  matrices(q_, q_.local().data()),
                                  key_matrices(k, k.local().data()),
                                  key_matrices(v, v.local().data())};
    Heap& heap = q_.mesh().template memory<typename Q::space>();
    const CategoryScope scope(heap, Category::workspace);
    const Storage room = heap.allocate(attention_room(piece, backward) * sizeof(A));
    f(piece, reinterpret_cast<A*>(room.data()));
  }

 private:
  const Q& q_;
  const Mask& mask_;
  A factor_;
  Positions positions_;
  List<HeadBlock> blocks_;
  std::size_t value_width_ = 0, batches_ = 1;
};

/// Attention to keys that come in pieces, in any order.
template <class Q, class K, class Mask>
class AttentionForward {
  using Queries = AttentionQueries<Q, K, Mask>;
  using A = typename Queries::A;

 public:
  template <class V>
  AttentionForward(const char* verb, const Q& q, const K& k, const V& v, const Mask& mask, double factor)
      : queries_(verb, q, k, v, mask, factor),
        out_(queries_.values()),
        top_(queries_.numbers()),
        sum_(queries_.numbers()) {
    fill(written(top_), top_.local().size(), -std::numeric_limits<A>::infinity());
  }

  template <class KeyPiece, class ValuePiece>
  void add(const KeyPiece& k, const ValuePiece& v, const Positions& keys) {
    queries_.meet(k, v, keys, false, [&](const auto& piece, A* room) {
      scores_ += attend_piece(piece, room, queries_.matrices(out_, written(out_)),
                              queries_.matrices(top_, written(top_)), queries_.matrices(sum_, written(sum_)));
    });
  }

  Attended<Q, typename Queries::Numbers> finish() && {
    A* const out = written(out_);
    A* const top = written(top_);
    const A* const sum = std::as_const(sum_).local().data();
    walk_beside<typename Queries::Numbers::dims>(out_).each(
        [&](std::size_t first, std::size_t row, std::size_t n, std::size_t stride) {
          for (std::size_t i = 0; i < n; ++i) {
            const A all = sum[row + i * stride];
            if (all != A(0)) out[first + i] /= all;  // who sees nothing keeps zeros
          }
        });
    for (std::size_t i = 0; i < top_.local().size(); ++i) {
      if (sum[i] != A(0)) top[i] += math::log(sum[i]);
    }
    return {rounded_to<typename Q::element>(std::move(out_)), std::move(top_), scores_};
  }

 private:
  Queries queries_;
  typename Queries::Values out_;         // weighted by exp(score - top)
  typename Queries::Numbers top_, sum_;  // of exp(score - top)
  std::uint64_t scores_ = 0;
};

/// Its backward: the gradients at the queries add up here, those at each piece are returned.
template <class Q, class K, class Mask>
class AttentionReverse {
  using Queries = AttentionQueries<Q, K, Mask>;
  using A = typename Queries::A;

 public:
  template <class V, class Saved>
  AttentionReverse(const char* verb, const Q& dout, const Q& q, const K& k, const V& v, const Saved& saved,
                   const Mask& mask, double factor)
      : queries_(verb, q, k, v, mask, factor),
        dout_(dout),
        log_sum_(saved.log_sum),
        dot_(queries_.numbers()),
        dq_(q.mesh(), q.extents()) {
    check_operands<head_dim>(verb, q, dout);
    check_operands(verb, v, dout);
    check_operands(verb, dout, saved.out);
    check_operands(verb, q, saved.log_sum);
    const auto* dy = dout.local().data();
    const auto* y = saved.out.local().data();
    A* const dot = written(dot_);
    walk_beside<typename Queries::Numbers::dims>(dout).each(
        [&](std::size_t first, std::size_t row, std::size_t n, std::size_t stride) {
          for (std::size_t i = 0; i < n; ++i) {
            dot[row + i * stride] += static_cast<A>(dy[first + i]) * static_cast<A>(y[first + i]);
          }
        });
  }

  /// DK: the type of the gradients at a piece.
  template <class DK, class KeyPiece, class ValuePiece>
  std::tuple<DK, DK> add(const KeyPiece& k, const ValuePiece& v, const Positions& keys) {
    DK dk(k.mesh(), k.extents()), dv(v.mesh(), v.extents());
    queries_.meet(k, v, keys, true, [&](const auto& piece, A* room) {
      scores_ += attend_piece_backward(piece, room, queries_.matrices(dout_, dout_.local().data()),
                                       queries_.matrices(log_sum_, log_sum_.local().data()),
                                       queries_.matrices(dot_, std::as_const(dot_).local().data()),
                                       queries_.matrices(dq_, written(dq_)), queries_.key_matrices(dk, written(dk)),
                                       queries_.key_matrices(dv, written(dv)));
    });
    return {std::move(dk), std::move(dv)};
  }

  /// With what add has returned, added up.
  template <class DK, class DV>
  auto finish(DK&& dk, DV&& dv) && {
    using E = typename Q::element;
    auto keys = rounded_to<E>(std::move(dk));
    auto values = rounded_to<E>(std::move(dv));
    return AttentionBackward<Q, decltype(keys), decltype(values)>{rounded_to<E>(std::move(dq_)), std::move(keys),
                                                                  std::move(values), scores_};
  }

 private:
  Queries queries_;
  const Q& dout_;
  const typename Queries::Numbers& log_sum_;
  typename Queries::Numbers dot_;  // of out and dout
  typename Queries::Values dq_;
  std::uint64_t scores_ = 0;
};

}  // namespace meshwise::detail
