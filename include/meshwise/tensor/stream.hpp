// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "meshwise/tensor/detail/facts.hpp"
#include "meshwise/tensor/detail/ring.hpp"
#include "meshwise/tensor/detail/stream_verdict.hpp"

namespace meshwise {

namespace detail {

/// Calls the function of a stream, which may want to know the global indices of the piece.
template <class F, class... Pieces>
decltype(auto) call_with_piece(const F& f, int coordinate, const Positions& positions, const Pieces&... pieces) {
  if constexpr (std::is_invocable_v<const F&, const Pieces&..., int, const Positions&>) {
    return f(pieces..., coordinate, positions);
  } else {
    return f(pieces..., coordinate);
  }
}

/// What the function of a stream made, as a tensor of the whole mesh.
template <class By, class Y, class Grid>
auto claimed_sum(const Grid& mesh, const Y& y, const Extent& extent) {
  Extents<typename Y::dims> extents = y.extents();
  extents[dim_index<typename placement_traits<By>::dim, Y>] = extent;
  return typename outside_of<Y, By, Grid>::is(mesh, extents, y.storage(), y.offset());
}

/// The loop of a stream. f(pieces, coordinate, step): a piece of each tensor.
template <class D, class Source, class Pieces, class F, std::size_t... is>
void stream_pieces(const Source& source, Pieces& pieces, const F& f, std::index_sequence<is...>) {
  const int n = source.ranks.size();
  std::optional<Pieces> next;
  GroupTask ring(source.ranks.endpoint("stream"), -1);  // lands before its buffers die
  for (int step = 0; step < n; ++step) {
    const bool more = step + 1 < n;
    if (more) {
      const std::size_t part = source.part(source.before(step + 1));
      next.emplace(room_like<D>(std::get<is>(pieces), part)...);
      ring.clear();
      (add_hop(ring, source.ranks, std::get<is>(pieces), std::get<is>(*next), piece_tag + is), ...);
      ring.start();
    }
    f(static_cast<const Pieces&>(pieces), source.before(step), step);
    if (!more) return;
    ring.wait();
    pieces = std::move(*next);
  }
}

/// Ends the waits of all ranks of a stream when one of them fails.
template <class F>
auto ending_all(Communicator& ranks, const F& work) {
  const auto end = [&ranks](const std::string& what) {
    if (ranks.size() > 1) ranks.abort("stream: rank " + std::to_string(ranks.rank()) + " has given up: " + what);
  };
  try {
    return work();
  } catch (const std::exception& error) {
    end(error.what());
    throw;
  } catch (...) {
    end("an exception of another kind than std::exception");
    throw;
  }
}

/// The function of a stream with its pieces as a tuple.
template <class Source, class F, std::size_t... is>
struct PieceCall {
  const Source& source;
  const F& f;

  template <class Pieces>
  decltype(auto) operator()(const Pieces& pieces, int coordinate, int = 0) const {
    return call_with_piece(f, coordinate, source.positions(coordinate), std::get<is>(pieces)...);
  }
};

/// A stream whose function contributes tensors Ys.
template <class R, class Source, class Grid, class Pieces, class Call, class Numbers, class... Ys>
auto stream_sums(const Source& source, const Grid& mesh, Pieces& pieces, const Call& call, Numbers numbers,
                 list<Ys...>) {
  TravellingSums<Source, Ys...> sums(source);
  stream_pieces<typename Source::D>(
      source, pieces,
      [&](const Pieces& some, int coordinate, int step) {
        sums.add(contributions<R>::pack(R(call(some, coordinate))), step, coordinate);
      },
      numbers);
  const std::tuple<Ys...> all = sums.finish();
  return [&]<std::size_t... is>(std::index_sequence<is...>) {
    return contributions<R>::unpack(claimed_sum<typename Source::CutBy>(mesh, std::get<is>(all), source.extent)...);
  }
  (std::index_sequence_for<Ys...>{});
}

template <class A, class F, std::size_t... is, class... Ts>
auto streamed(const F& f, std::index_sequence<is...> numbers, const Ts&... xs) {
  using First = front<list<Ts...>>;
  using Source = StreamSource<A, First>;
  const First& x = std::get<0>(std::tie(xs...));
  const Source source(x);
  (check_meshes("stream", x, xs), ...);
  (check_extent<typename Source::D>("stream", x, xs), ...);
  if (x.mesh().checks() == Checks::communicating) {
    Statement statement;
    (state_tensor(statement, facts_of(xs)), ...);
    statement.compare(source.ranks, "stream");
  }
  using Pieces = std::tuple<typename inside_of<Ts, A>::is...>;
  Pieces pieces(inside<A>(xs)...);
  const PieceCall<Source, F, is...> call{source, f};
  using R = typename stream_along<F, A, Ts...>::is;
  return ending_all(source.ranks, [&] {
    if constexpr (std::is_void_v<R>) {
      stream_pieces<typename Source::D>(source, pieces, call, numbers);
    } else {
      return stream_sums<R>(source, x.mesh(), pieces, call, numbers, typename contributions<R>::is{});
    }
  });
}

}  // namespace detail

/// An all-gather along A that is consumed in pieces as they arrive: calls f(piece, coordinate) for every coordinate of
/// A, this rank's first, then those before it, one after the other round the ring.
///
/// x: a tensor that A cuts along one dim, which no other axis cuts; by any rule. f works inside the axis: piece is that
/// coordinate's as a tensor on the mesh without A (see `inside`), the same type for all; a third parameter of f, if it
/// has one, gets the global indices that the piece has of that dim, as Positions. f may keep a piece, convert along
/// other axes, and stream along them.
/// If f returns a tensor with the dim of the stream, shaped like the piece along it, that is its contribution to the
/// owner of the piece: contributions travel behind the pieces, each rank adds its own, and the result is their sum over
/// the ranks, sharded by A as x is: a reduce_scatter whose input is made in pieces, as the backward of ring attention
/// needs it. They are added up in the order in which they travel, from the rank after the owner on, the owner's last.
/// Cost: receives what an all_gather receives, each piece from the rank before, and for contributions what a
/// reduce_scatter receives; n - 1 groups of messages, n the ranks along A, empty pieces need none. The next piece is on
/// its way while f works: at most two are held besides the own (more if f keeps them), and for contributions two
/// besides what f made of the own piece. Where ranks are threads, pieces above 8 KiB are read when their receiver next
/// waits.
/// Ordering: collective along A.
/// Errors: refused where A cuts no dim, or shares one with other axes, and for an f that does not take the pieces or
/// contributes something else; those of messages. If f throws on a rank, that rank's exception is thrown there, the
/// axis is aborted, and all others get an Error that says why.
template <Axis A, AnyTensor T, class F>
  requires detail::is_accepted<detail::stream_along<F, A, T>>
auto stream(const T& x, const F& f) { return detail::streamed<A>(f, std::index_sequence<0>{}, x); }
template <Axis A, AnyTensor T, class F>
  requires(!detail::is_accepted<detail::stream_along<F, A, T>>)
auto stream(const T& x, const F& f) -> detail::stream_along<F, A, T>;

/// The same of several tensors that A cuts alike: `stream<cp>(std::tie(k, v), f)` calls f(k_piece, v_piece,
/// coordinate). Their other dims have nothing to do with each other. f may return a std::tuple of contributions, and
/// gets a std::tuple of their sums.
template <Axis A, AnyTensor... Ts, class F>
  requires(sizeof...(Ts) > 0 && detail::is_accepted<detail::stream_along<F, A, Ts...>>)
auto stream(const std::tuple<Ts...>& all, const F& f) {
  return [&]<std::size_t... is>(std::index_sequence<is...> numbers) {
    return detail::streamed<A>(f, numbers, std::get<is>(all)...);
  }
  (std::index_sequence_for<Ts...>{});
}
template <Axis A, AnyTensor... Ts, class F>
  requires(sizeof...(Ts) > 0 && !detail::is_accepted<detail::stream_along<F, A, Ts...>>)
auto stream(const std::tuple<Ts...>& all, const F& f) -> detail::stream_along<F, A, Ts...>;

}  // namespace meshwise
