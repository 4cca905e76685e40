// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share and need not compile each: the ranks' threads and the plain arrays.
#include "support.hpp"

#include <cmath>
#include <cstring>

#include "../support/launch.hpp"
#include "meshwise/collective/barrier.hpp"

namespace test {

std::vector<std::size_t> Piece::positions() const {
  std::vector<std::size_t> result{0};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    std::vector<std::size_t> deeper;
    deeper.reserve(result.size() * held[d].size());
    for (std::size_t before : result) {
      for (std::size_t i = 0; i < held[d].size(); ++i) deeper.push_back(before * extents[d] + held[d].at(i));
    }
    result = std::move(deeper);
  }
  return result;
}

double combine(ReductionKind op, double a, double b) {
  switch (op) {
    case ReductionKind::product: return a * b;
    case ReductionKind::min: return std::fmin(a, b);
    case ReductionKind::max: return std::fmax(a, b);
    default: return a + b;
  }
}

std::vector<double> assembled(const std::vector<Piece>& pieces) {
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
      require(positions.size() == piece.values.size(), "a piece has another size than its positions");
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

double Rank::part(const Piece& piece, std::size_t position, double value) {
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

std::vector<double> Rank::exchange(Piece piece) const {
  Communicator& world = mesh.world();
  std::vector<Piece>& pieces = board_.pieces[turn_];
  turn_ = 1 - turn_;  // nobody comes to this side again before everybody has left it for the other one
  pieces[static_cast<std::size_t>(world.rank())] = std::move(piece);
  barrier(world);
  return assembled(pieces);
}

void run_on_grid(GridSize size, void (*program)(const void* context, const Rank& rank), const void* context) {
  Board board(size.dp * size.tp);
  launch(size.dp * size.tp, [&](Communicator& world) {
    const Grid mesh(world, {size.dp, size.tp});
    program(context, Rank(mesh, board));
  });
}

void require_equal(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
  require(a.size() == b.size(), what + ": sizes differ");
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    require(false,
            what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]));
  }
}

void require_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                   const std::string& what) {
  require(a.size() == b.size(), what + ": sizes differ");
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i] - b[i]) <= tolerance * std::fmax(1.0, std::fabs(b[i]))) continue;
    require(false,
            what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i]));
  }
}

}  // namespace test
