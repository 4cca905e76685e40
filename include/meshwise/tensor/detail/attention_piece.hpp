// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "meshwise/core/convert_elements.hpp"
#include "meshwise/core/detail/pack_loops.hpp"
#include "meshwise/core/detail/pack_math.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/tensor/detail/attention_tiles.hpp"
#include "meshwise/tensor/detail/einsum.hpp"
#include "meshwise/tensor/detail/shared_heads.hpp"

namespace meshwise::detail {

/// A matrix among the elements of a local piece.
template <class E>
struct StridedMatrix {
  E* data = nullptr;
  std::ptrdiff_t row = 0, column = 0;  // strides

  E* at(std::size_t r) const { return data + static_cast<std::ptrdiff_t>(r) * row; }
  StridedMatrix from(std::size_t r) const { return {at(r), row, column}; }
  StridedMatrix transposed() const { return {data, column, row}; }
  StridedMatrix<const E> read() const { return {data, row, column}; }
};

/// A local piece as a matrix of positions and columns for every batch and head.
template <class E>
struct HeadMatrices {
  struct BatchDim {
    std::size_t extent = 1;
    std::ptrdiff_t stride = 0;
  };

  StridedMatrix<E> of(std::size_t number, std::size_t h) const {
    StridedMatrix<E> result = first;
    result.data += static_cast<std::ptrdiff_t>(h) * head;
    for (int i = dims; i-- > 0; number /= batch[static_cast<std::size_t>(i)].extent) {
      const BatchDim& d = batch[static_cast<std::size_t>(i)];
      result.data += static_cast<std::ptrdiff_t>(number % d.extent) * d.stride;
    }
    return result;
  }

  StridedMatrix<E> first;
  std::ptrdiff_t head = 0;
  std::array<BatchDim, LayoutValue::most_dims> batch{};
  int dims = 0;
};

/// x as matrices of Row by Column for every Head and every index of the dims of Batch, which are those of q; along
/// those that x lacks it stands still.
template <class Row, class Column, class Head, class... Batch, class Q, class T, class E>
HeadMatrices<E> matrices_of(const Q& q, const T& x, E* data, list<Batch...>) {
  const auto stride = [&x]<class D>(type<D>) -> std::ptrdiff_t {
    if constexpr (contains<D, dims_of<typename T::dims>>) {
      return static_cast<std::ptrdiff_t>(elements_after(x, dim_index<D, T>));
    } else {
      return 0;
    }
  };
  HeadMatrices<E> result;
  result.first = {data, stride(type<Row>{}), stride(type<Column>{})};
  result.head = stride(type<Head>{});
  ((result.batch[static_cast<std::size_t>(result.dims++)] = {q.ranges()[dim_index<Batch, Q>].size,
                                                             stride(type<Batch>{})}),
   ...);
  return result;
}

/// c = alpha a b + beta c, with a of m x k.
template <class A>
void multiply(const Gemm& gemm, A alpha, const StridedMatrix<const A>& a, const StridedMatrix<const A>& b, A beta,
              const StridedMatrix<A>& c, std::size_t m, std::size_t k, std::size_t n) {
  const auto labels = [](const auto& x, int rows, std::size_t r, int columns, std::size_t s) {
    const auto stride = [](std::ptrdiff_t d) { return d == 0 ? 1 : d; };  // of something empty
    return Labels{}
        .add(rows, static_cast<std::ptrdiff_t>(r), stride(x.row))
        .add(columns, static_cast<std::ptrdiff_t>(s), stride(x.column));
  };
  einsum<A>(gemm, alpha, a.data, labels(a, 0, m, 1, k), b.data, labels(b, 1, k, 2, n), beta, c.data,
            labels(c, 0, m, 2, n));
}

/// What the tiles of all heads have in common: this rank's queries, a piece of keys and values, and memory for a tile.
template <class E>
struct AttentionPiece {
  using A = accumulate_t<E>;

  const Gemm& gemm;
  A factor;
  std::size_t batches, width, value_width;
  const List<HeadBlock>& blocks;
  const List<KeySpan>& spans;
  const List<AttentionTile>& tiles;
  HeadMatrices<const E> q, k, v;

  std::size_t most_rows() const { return smaller(spans.size(), AttentionTile::most_rows); }
  std::size_t most_keys() const {
    std::size_t most = 0;
    for (const AttentionTile& t : tiles) most = larger(most, t.end - t.base);
    return most;
  }

  /// Elements in which some rows are computed with: those of the matrix itself, or copies in a wider type.
  StridedMatrix<const A> widened(const StridedMatrix<const E>& x, std::size_t rows, std::size_t columns,
                                 A* room) const {
    if constexpr (std::is_same_v<A, E>) {
      return x;
    } else {
      for (std::size_t r = 0; r < rows; ++r) {
        if (x.column == 1) {
          convert_elements<E, A>(columns, x.at(r), room + r * columns);
        } else {
          for (std::size_t c = 0; c < columns; ++c) {
            room[r * columns + c] = static_cast<A>(x.at(r)[static_cast<std::ptrdiff_t>(c) * x.column]);
          }
        }
      }
      return {room, static_cast<std::ptrdiff_t>(columns), 1};
    }
  }

  /// Calls f(batch, head, share, tile, k, v): the keys and values of the share, from those of the tile on.
  template <class F>
  void each(A* room_k, A* room_v, const F& f) const {
    for (std::size_t b = 0; b < batches; ++b) {
      for (const HeadBlock& block : blocks) {
        for (std::size_t s = 0; s < block.shared; ++s) {
          const std::size_t share = block.shared_begin + s;
          const auto keys = k.of(b, share), values = v.of(b, share);
          StridedMatrix<const A> wide_k, wide_v;
          std::size_t base = ~std::size_t{0};
          for (const AttentionTile& t : tiles) {
            if (t.base != base) {
              base = t.base;
              wide_k = widened(keys.from(base), t.end - base, width, room_k);
              wide_v = widened(values.from(base), t.end - base, value_width, room_v);
            }
            for (std::size_t h = 0; h < block.heads; ++h) {
              f(b, block.begin + s * block.heads + h, share, t, wide_k.from(t.key - base), wide_v.from(t.key - base));
            }
          }
        }
      }
    }
  }
  /// The part of a tile's keys that one of its queries sees, by their numbers in the tile.
  KeySpan span(const AttentionTile& t, std::size_t r) const {
    const KeySpan& all = spans[t.row + r];
    const std::size_t begin = larger(all.begin, t.key), end = smaller(all.end, t.key + t.keys);
    return begin < end ? KeySpan{begin - t.key, end - t.key} : KeySpan{0, 0};
  }
};

/// Elements of workspace that attend_piece and attend_piece_backward need.
template <class E>
std::size_t attention_room(const AttentionPiece<E>& p, bool backward) {
  const std::size_t rows = p.most_rows(), keys = p.most_keys(), tiles = backward ? 2 : 1;
  const std::size_t widened = std::is_same_v<accumulate_t<E>, E> ? 0 : p.width + p.value_width;
  const std::size_t queries = std::is_same_v<accumulate_t<E>, E> ? 0 : p.width + (backward ? p.value_width : 0);
  return tiles * rows * keys + keys * widened + rows * queries;
}

/// Adds a piece to what the queries have summed up: out = sum of exp(score - top) v, sum = that of exp(score - top),
/// top = the largest score so far. Returns how many scores it has evaluated.
template <class E, class A = accumulate_t<E>>
std::uint64_t attend_piece(const AttentionPiece<E>& p, A* room, const HeadMatrices<A>& out, const HeadMatrices<A>& top,
                           const HeadMatrices<A>& sum) {
  A* const scores = room;
  A* const room_q = scores + p.most_rows() * p.most_keys();
  A* const room_k = room_q + (std::is_same_v<A, E> ? 0 : p.most_rows() * p.width);
  std::uint64_t evaluated = 0;
  p.each(room_k, room_k + (std::is_same_v<A, E> ? 0 : p.most_keys() * p.width),
         [&](std::size_t b, std::size_t h, std::size_t, const AttentionTile& t, const StridedMatrix<const A>& k,
             const StridedMatrix<const A>& v) {
           const StridedMatrix<A> s{scores, static_cast<std::ptrdiff_t>(t.keys), 1};
           const auto q = p.widened(p.q.of(b, h).from(t.row), t.rows, p.width, room_q);
           const auto o = out.of(b, h).from(t.row);
           const auto tops = top.of(b, h).from(t.row), sums = sum.of(b, h).from(t.row);
           multiply<A>(p.gemm, p.factor, q, k.transposed(), 0, s, t.rows, p.width, t.keys);
           for (std::size_t r = 0; r < t.rows; ++r) {
             const KeySpan seen = p.span(t, r);
             A* const row = s.at(r);
             fill(row, seen.begin, A(0));
             fill(row + seen.end, t.keys - seen.end, A(0));
             if (seen.begin == seen.end) continue;
             const std::size_t n = seen.end - seen.begin;
             A* const x = row + seen.begin;
             const A before = *tops.at(r);
             A now = before, total(0);
             in_packs([&](auto width) {
               now = max_packs(width, n, before, Itself{}, x);
               map_packs(
                   width, x, n, [&]<class P>(const P& score) { return math::exp(score - P(now)); }, x);
               total = sum_packs<A>(width, n, Itself{}, x);
             });
             const A shrink = math::exp(before - now);  // of nothing so far: exp(-infinity) = 0
             *tops.at(r) = now;
             *sums.at(r) = *sums.at(r) * shrink + total;
             A* const y = o.at(r);
             for (std::ptrdiff_t c = 0; c < static_cast<std::ptrdiff_t>(p.value_width); ++c) y[c * o.column] *= shrink;
             evaluated += n;
           }
           multiply<A>(p.gemm, 1, s.read(), v, 1, o, t.rows, t.keys, p.value_width);
         });
  return evaluated;
}

/// Adds the gradients that a piece and the queries have from each other. log_sum: that of all keys. dot: the sums of
/// out dout over the columns.
template <class E, class A = accumulate_t<E>>
std::uint64_t attend_piece_backward(const AttentionPiece<E>& p, A* room, const HeadMatrices<const E>& dout,
                                    const HeadMatrices<const A>& log_sum, const HeadMatrices<const A>& dot,
                                    const HeadMatrices<A>& dq, const HeadMatrices<A>& dk, const HeadMatrices<A>& dv) {
  const std::size_t area = p.most_rows() * p.most_keys();
  A* const room_q = room + 2 * area;
  A* const room_dout = room_q + (std::is_same_v<A, E> ? 0 : p.most_rows() * p.width);
  A* const room_k = room_dout + (std::is_same_v<A, E> ? 0 : p.most_rows() * p.value_width);
  std::uint64_t evaluated = 0;
  p.each(room_k, room_k + (std::is_same_v<A, E> ? 0 : p.most_keys() * p.width),
         [&](std::size_t b, std::size_t h, std::size_t share, const AttentionTile& t, const StridedMatrix<const A>& k,
             const StridedMatrix<const A>& v) {
           const StridedMatrix<A> probability{room, static_cast<std::ptrdiff_t>(t.keys), 1};
           const StridedMatrix<A> ds{room + area, static_cast<std::ptrdiff_t>(t.keys), 1};
           const auto q = p.widened(p.q.of(b, h).from(t.row), t.rows, p.width, room_q);
           const auto dy = p.widened(dout.of(b, h).from(t.row), t.rows, p.value_width, room_dout);
           const auto logs = log_sum.of(b, h).from(t.row), dots = dot.of(b, h).from(t.row);
           multiply<A>(p.gemm, p.factor, q, k.transposed(), 0, probability, t.rows, p.width, t.keys);
           multiply<A>(p.gemm, 1, dy, v.transposed(), 0, ds, t.rows, p.value_width, t.keys);
           for (std::size_t r = 0; r < t.rows; ++r) {
             const KeySpan seen = p.span(t, r);
             for (A* const row : {probability.at(r), ds.at(r)}) {
               fill(row, seen.begin, A(0));
               fill(row + seen.end, t.keys - seen.end, A(0));
             }
             const std::size_t n = seen.end - seen.begin;
             A* const x = probability.at(r) + seen.begin;
             A* const y = ds.at(r) + seen.begin;
             const A log = *logs.at(r), mean = *dots.at(r);
             in_packs([&](auto width) {
               map_packs(
                   width, x, n, [&]<class P>(const P& score) { return math::exp(score - P(log)); }, x);
               map_packs(
                   width, y, n,
                   [&]<class P>(const P& weight, const P& d) { return weight * (d - P(mean)) * P(p.factor); }, x, y);
             });
             evaluated += n;
           }
           multiply<A>(p.gemm, 1, probability.transposed().read(), dy, 1, dv.of(b, share).from(t.key), t.keys, t.rows,
                       p.value_width);
           multiply<A>(p.gemm, 1, ds.read(), k, 1, dq.of(b, h).from(t.row), t.rows, t.keys, p.width);
           multiply<A>(p.gemm, 1, ds.transposed().read(), q, 1, dk.of(b, share).from(t.key), t.keys, t.rows, p.width);
         });
  return evaluated;
}

}  // namespace meshwise::detail
