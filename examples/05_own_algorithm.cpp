// SPDX-License-Identifier: Apache-2.0
// A reduction and an algorithm of your own: what they must say, how the algorithm is proven, and how a call uses them.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/schedule/verify.hpp"
#include "support/command_line.hpp"

namespace {

using namespace meshwise;

// The value that is furthest from zero; of +3 and -3 the one of the lower rank, so that the order of ranks matters.
struct Furthest {
  static constexpr const char* name = "furthest";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;  // only algorithms that are proven to keep rank order will be used
  static constexpr bool linear = false;

  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{0};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return (b < 0 ? -b : b) > (a < 0 ? -a : a) ? b : a;
  }
};
static_assert(Reduces<Furthest, float>);

// One rank does everything: it combines all vectors in one move, then the others fetch the result. A schedule is data:
// who moves which slots, from where, to where. There is one slot for each of the blocks into which vectors are cut.
struct Hub {
  static constexpr const char* name = "hub";
  int rank = 0;

  // Ranks whose hubs differ would wait for the wrong rank: with this they get an error that tells both.
  std::string description() const { return "hub(" + std::to_string(rank) + ")"; }

  constexpr bool supports(const Shape& shape) const {
    return valid(shape) && shape.operation == Operation::all_reduce && rank < shape.ranks;
  }
  constexpr int rounds(const Shape& shape) const { return shape.ranks > 1 ? 2 : 1; }
  constexpr int scratch_slots(const Shape&) const { return 0; }

  // The moves that `mine` performs in a round. What has to be waited for follows from what they read and write.
  constexpr std::vector<Move> by(const Shape& shape, int mine, int round) const {
    const int slots = shape.ranks;
    Move move;
    move.by = mine;
    if (round == 0 && mine == rank) {
      for (int r = 0; r < shape.ranks; ++r) move.from.push_back(Piece{r, Buffer::input, 0, slots});
      move.to.push_back(Piece{mine, Buffer::output, 0, slots});
    } else if (round == 1 && mine != rank) {
      move.from.push_back(Piece{rank, Buffer::output, 0, slots});
      move.to.push_back(Piece{mine, Buffer::output, 0, slots});
    } else {
      return {};
    }
    return {move};
  }

  // The ranks that touch buffers of `mine` in a round.
  constexpr std::vector<int> partners(const Shape& shape, int mine, int round) const {
    std::vector<int> result;
    for (int r = 0; r < shape.ranks; ++r) {
      if (r != mine && (round == 0 ? r == rank : mine == rank)) result.push_back(r);
    }
    return result;
  }
};

// Proven at compile time for some shapes: every slot ends as it should, each contribution is there once, nothing is
// overwritten too early. Calls prove the shape that they run on when it comes up first.
constexpr Verdict proof = verify(Hub{2}, Shape{Operation::all_reduce, 5, 0, false});
static_assert(proof.ok() && proof.in_rank_order && proof.identical_on_all_ranks);
static_assert(verify(Hub{}, Shape{Operation::all_reduce, 4, 0, true}).ok());

// Even ranks bring +1, +2, ... and odd ranks -1, -2, ..., each times its number: the last rank's are the furthest.
float value(int rank, int i) { return static_cast<float>((rank % 2 == 0 ? 1 : -1) * (rank + 1) * (i + 1)); }

void program(Communicator& world) {
  const Hub hub{world.size() - 1};
  CollectiveOptions options;
  options.generator = AnyGenerator(hub);  // one without parameters is named by its type: all_reduce<Mine>(...)
  std::vector<float> data(6);
  for (int i = 0; i < 6; ++i) data[static_cast<std::size_t>(i)] = value(world.rank(), i);
  all_reduce<Furthest>(world, data, options);
  for (int i = 0; i < 6; ++i) {
    if (data[static_cast<std::size_t>(i)] == value(world.size() - 1, i)) continue;
    throw std::runtime_error("wrong on rank " + std::to_string(world.rank()) + ", element " + std::to_string(i));
  }
  if (world.rank() != 0) return;
  std::printf("furthest from zero:");
  for (const float x : data) std::printf(" %g", static_cast<double>(x));
  std::printf("\n\n%s\n", world.explain(Operation::all_reduce, sizeof(float) * data.size(), options).c_str());
  std::printf("and what the library would take for a megabyte:\n%s",
              world.explain(Operation::all_reduce, std::uint64_t{1} << 20).c_str());
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Runs a reduction and an algorithm of its own.", program);
}
