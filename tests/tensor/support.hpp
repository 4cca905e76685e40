// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshwise/core/random.hpp"
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
  std::vector<Positions> held;  // global indices of each dim, in local order
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
  std::vector<std::size_t> positions() const;
};

template <class T>
Piece describe(const T& x) {
  Piece piece;
  piece.extents.assign(x.extents().begin(), x.extents().end());
  [&]<class... Ds>(detail::list<Ds...>) {
    (piece.held.push_back(x.template positions<Ds>()), ...);
  }(detail::dims_of<typename T::dims>{});
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

double combine(ReductionKind op, double a, double b);

/// The tensor that the pieces of all ranks denote, by the definition of the placements; fails unless every element is
/// held exactly once per part and replicas are equal bit for bit.
std::vector<double> assembled(const std::vector<Piece>& pieces);

/// Where the ranks of a test lay their pieces, to be looked at without the library's help.
struct Board {
  explicit Board(int ranks) {
    for (std::vector<Piece>& side : pieces) side.resize(static_cast<std::size_t>(ranks));
  }
  std::array<std::vector<Piece>, 2> pieces;
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
    piece.held = {Range{0, 1}};
    piece.values = {mine};
    piece.part = static_cast<std::size_t>(mesh.world().rank());
    piece.parts = static_cast<std::size_t>(mesh.world().size());
    return exchange(std::move(piece))[0];
  }

  const Grid& mesh;

 private:
  static double part(const Piece& piece, std::size_t position, double value);
  std::vector<double> exchange(Piece piece) const;

  mutable std::size_t turn_ = 0;
  Board& board_;
};

void run_on_grid(GridSize size, void (*program)(const void* context, const Rank& rank), const void* context);

/// Runs program(Rank) on every rank of a grid.
template <class F>
void on_grid(GridSize size, const F& program) {
  run_on_grid(
      size, [](const void* context, const Rank& rank) { (*static_cast<const F*>(context))(rank); }, &program);
}

/// value(position) for all positions of an array of `size` elements.
template <class F>
std::vector<double> array(std::size_t size, const F& value) {
  std::vector<double> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = value(i);
  return result;
}

void require_equal(const std::vector<double>& a, const std::vector<double>& b, const std::string& what);

/// |a - b| <= tolerance max(1, |b|), element by element.
void require_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                   const std::string& what);

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
