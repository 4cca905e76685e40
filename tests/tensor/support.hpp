// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "meshwise/tensor/tensor.hpp"

namespace test {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;

struct d0 : dim {};
struct d1 : dim {};
struct d2 : dim {};

/// Sizes of the two axes.
struct GridSize {
  int dp, tp;
};
inline constexpr std::array<GridSize, 6> few_grids{{{1, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 3}, {2, 3}}};
inline constexpr std::array<GridSize, 9> all_grids{
    {{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3}}};
inline constexpr std::array<std::size_t, 6> small_sizes{0, 1, 2, 3, 5, 7};

/// Whether the long products are wanted.
inline bool full() {
  const char* value = std::getenv("MESHWISE_FULL");
  return value != nullptr && std::string_view(value) == "1";
}

/// Fails a rank, and through launch the test.
inline void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

/// Numbers from a seed, the same on every rank.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_bits(seed_, next_++) % n); }
  std::size_t size() { return small_sizes[below(small_sizes.size())]; }

 private:
  std::uint64_t seed_, next_ = 0;
};

/// What one rank holds of a tensor, without types.
struct Piece {
  std::vector<std::size_t> extents;
  std::vector<Range> ranges;
  std::vector<double> values;
  std::size_t part = 0, parts = 1;  // along the axes of Partial placements
  std::size_t replica = 0;          // along the axes of Replicate placements
  ReductionKind op = ReductionKind::sum;

  std::size_t size() const {
    std::size_t n = 1;
    for (std::size_t e : extents) n *= e;
    return n;
  }
  /// The row-major position in the whole tensor of each local element.
  std::vector<std::size_t> positions() const {
    std::vector<std::size_t> result{0};
    for (std::size_t d = 0; d < extents.size(); ++d) {
      std::vector<std::size_t> deeper;
      deeper.reserve(result.size() * ranges[d].size);
      for (std::size_t before : result) {
        for (std::size_t i = ranges[d].begin; i < ranges[d].end(); ++i) deeper.push_back(before * extents[d] + i);
      }
      result = std::move(deeper);
    }
    return result;
  }
};

template <class T>
Piece describe(const T& x) {
  Piece piece;
  piece.extents.assign(x.extents().begin(), x.extents().end());
  piece.ranges.assign(x.ranges().begin(), x.ranges().end());
  [&]<class... As>(detail::list<As...>) {
    [[maybe_unused]] const auto one = [&]<class A>(detail::type<A>) {
      using traits = detail::placement_traits<placement_of<typename T::layout, A>>;
      const auto n = static_cast<std::size_t>(x.mesh().template size<A>());
      const auto k = static_cast<std::size_t>(x.mesh().template coordinate<A>());
      if constexpr (traits::partial) {
        piece.part = piece.part * n + k;
        piece.parts *= n;
        piece.op = reduction_kind<typename traits::op>;
      } else if constexpr (traits::replicate) {
        piece.replica = piece.replica * n + k;
      }
    };
    (one(detail::type<As>{}), ...);
  }(detail::axes_of_layout<typename T::layout>{});
  return piece;
}

template <class T>
Piece piece_of(const T& x) {
  Piece piece = describe(x);
  for (const auto& value : x.local()) piece.values.push_back(static_cast<double>(value));
  return piece;
}

inline double combine(ReductionKind op, double a, double b) {
  switch (op) {
    case ReductionKind::product: return a * b;
    case ReductionKind::min: return std::fmin(a, b);
    case ReductionKind::max: return std::fmax(a, b);
    default: return a + b;
  }
}

/// The tensor that the pieces of all ranks denote, by the definition of the placements; fails unless every element is
/// held exactly once per part and replicas are equal bit for bit.
inline std::vector<double> assembled(const std::vector<Piece>& pieces) {
  const std::size_t size = pieces[0].size();
  std::size_t replicas = 0;
  for (const Piece& piece : pieces) replicas = piece.replica + 1 > replicas ? piece.replica + 1 : replicas;
  std::vector<double> first;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    std::vector<double> whole(size);
    std::vector<std::size_t> held(size, 0);
    for (const Piece& piece : pieces) {
      require(piece.extents == pieces[0].extents, "ranks disagree on the extents");
      if (piece.replica != replica) continue;
      const std::vector<std::size_t> positions = piece.positions();
      require(positions.size() == piece.values.size(), "a piece has another size than its ranges");
      for (std::size_t i = 0; i < positions.size(); ++i) {
        double& value = whole[positions[i]];
        value = held[positions[i]]++ == 0 ? piece.values[i] : combine(piece.op, value, piece.values[i]);
      }
    }
    for (std::size_t count : held) require(count == pieces[0].parts, "an element is held more or less than once");
    if (replica == 0) {
      first = std::move(whole);
    } else {
      require(size == 0 || std::memcmp(whole.data(), first.data(), size * sizeof(double)) == 0, "replicas differ");
    }
  }
  return first;
}

/// Where the ranks of a test lay their pieces, to be looked at without the library's help.
struct Board {
  explicit Board(int ranks) : pieces(static_cast<std::size_t>(ranks)) {}
  std::vector<Piece> pieces;
  std::vector<double> whole;
};

/// A small integer as a function of a position; the same for everybody.
inline double integer(std::size_t position, std::uint64_t salt) {
  return static_cast<double>(random_bits(salt, position) % 41) - 20.0;
}
/// A number in (-1, 1) as a function of a position.
inline double real(std::size_t position, std::uint64_t salt) { return 2.0 * uniform(salt, position) - 1.0; }

/// One rank of a test on a grid.
class Rank {
 public:
  Rank(const Grid& grid, Board& board) : mesh(grid), board_(board) {}

  /// The global array that a tensor denotes, on every rank.
  template <class T>
  std::vector<double> denoted(const T& x) const {
    return exchange(piece_of(x));
  }

  /// A tensor that denotes value(position), whatever its layout. A Partial is made of parts that differ: sums of
  /// integers are exact in every element type, extremes stand on one rank each.
  template <class T, class F>
  T fill(const Extents<typename T::dims>& extents, const F& value) const {
    T x(mesh, extents);
    const Piece piece = describe(x);
    const auto positions = piece.positions();
    const auto out = x.mutable_local();
    for (std::size_t i = 0; i < positions.size(); ++i) {
      out[i] = static_cast<typename T::element>(part(piece, positions[i], static_cast<double>(value(positions[i]))));
    }
    return x;
  }
  template <class T>
  T integers(const Extents<typename T::dims>& extents, std::uint64_t salt = 1) const {
    return fill<T>(extents, [salt](std::size_t i) { return integer(i, salt); });
  }
  template <class T>
  T reals(const Extents<typename T::dims>& extents, std::uint64_t salt = 1) const {
    return fill<T>(extents, [salt](std::size_t i) { return real(i, salt); });
  }

  /// A number added up over all ranks.
  double total(double mine) const {
    Piece piece;
    piece.extents = {1};
    piece.ranges = {Range{0, 1}};
    piece.values = {mine};
    piece.part = static_cast<std::size_t>(mesh.world().rank());
    piece.parts = static_cast<std::size_t>(mesh.world().size());
    return exchange(std::move(piece))[0];
  }

  const Grid& mesh;

 private:
  static double part(const Piece& piece, std::size_t position, double value) {
    if (piece.parts == 1) return value;
    const auto share = [position](std::size_t k) { return static_cast<double>((position * 7 + k * 13) % 11) - 5.0; };
    if (piece.op != ReductionKind::sum) {
      if (position % piece.parts == piece.part) return value;
      const double away = 6.0 + share(piece.part);
      return piece.op == ReductionKind::max ? value - away : value + away;
    }
    if (piece.part != 0) return share(piece.part);
    for (std::size_t k = 1; k < piece.parts; ++k) value -= share(k);
    return value;
  }

  std::vector<double> exchange(Piece piece) const {
    Communicator& world = mesh.world();
    board_.pieces[static_cast<std::size_t>(world.rank())] = std::move(piece);
    barrier(world);
    if (world.rank() == 0) board_.whole = assembled(board_.pieces);
    barrier(world);
    return board_.whole;  // rank 0 writes it again only after everybody has come with a new piece
  }

  Board& board_;
};

/// Runs program(Rank&) on every rank of a grid.
template <class F>
void on_grid(GridSize size, const F& program) {
  Board board(size.dp * size.tp);
  launch(size.dp * size.tp, [&](Communicator& world) {
    const Grid mesh(world, {size.dp, size.tp});
    const Rank rank(mesh, board);
    program(rank);
  });
}

/// value(position) for all positions of an array of `size` elements.
template <class F>
std::vector<double> array(std::size_t size, const F& value) {
  std::vector<double> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = value(i);
  return result;
}

inline void require_equal(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
  require(a.size() == b.size(), what + ": sizes differ");
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    require(false,
            what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]));
  }
}

/// |a - b| <= tolerance max(1, |b|), element by element.
inline void require_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                          const std::string& what) {
  require(a.size() == b.size(), what + ": sizes differ");
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i] - b[i]) <= tolerance * std::fmax(1.0, std::fabs(b[i]))) continue;
    require(false,
            what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]));
  }
}

/// The text of the Error that f throws; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace test
