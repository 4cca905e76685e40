// SPDX-License-Identifier: Apache-2.0
// A two-layer perceptron with tensor and sequence parallelism, forward and backward: the layouts are in the types, the
// communication is in the conversions, and the numbers are those of one rank.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/random.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/tensor/activation.hpp"
#include "meshwise/tensor/backward.hpp"
#include "meshwise/tensor/contract.hpp"
#include "meshwise/tensor/generate.hpp"
#include "support/command_line.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, tp>;
using X = Tensor<double, Dims<batch, seq, hidden>, Layout<Grid, Shard<batch, dp>, Shard<seq, tp>>>;
using Up = Tensor<double, Dims<hidden, ffn>, Layout<Grid, Shard<ffn, tp>>>;
using Down = Tensor<double, Dims<ffn, hidden>, Layout<Grid, Shard<ffn, tp>>>;

constexpr std::size_t sequences = 3, positions = 10, width = 16, inner = 50;  // nothing needs to divide anything

// A result: how it is placed, and all of it.
struct Result {
  std::string name, over_dp, over_tp;
  std::vector<double> numbers;
};

template <class T>
Result result(const char* name, const T& x) {
  using L = typename T::layout;
  const auto whole = convert<Replicate<tp>, Replicate<dp>>(x);
  return {name, name_of<placement_of<L, dp>>(), name_of<placement_of<L, tp>>(),
          std::vector<double>(whole.local().begin(), whole.local().end())};
}

// Numbers that depend on the stream and the global index alone, so that every layout sees the same tensor.
template <class T>
T random(const Grid& mesh, const Extents<typename T::dims>& extents, std::uint64_t stream) {
  return generate<T>(mesh, extents, [&](const auto& i) { return 0.3 * normal(stream_seed(1, stream), i.linear); });
}

std::vector<Result> perceptron(const Grid& mesh) {
  const X x = random<X>(mesh, {sequences, positions, width}, 0);
  const Up w1 = random<Up>(mesh, {width, inner}, 1);
  const Down w2 = random<Down>(mesh, {inner, width}, 2);
  const X dout = random<X>(mesh, {sequences, positions, width}, 3);  // the gradient that comes from what follows
  const Traffic start = mesh.along<tp>().traffic();

  const auto full = convert<Replicate<tp>>(x);  // all-gather: every rank sees the whole sequence
  const auto h = contract<hidden>(full, w1);    // and computes its own inner units
  const auto z = contract<ffn>(gelu(h), w2);    // a summed dim that is sharded: Partial<tp>, a sum is owed
  const X out = convert<Shard<seq, tp>>(z);     // reduce-scatter; without it this line does not compile

  const auto dz = backward_to<decltype(z)>(dout);  // all-gather: the backward of the reduce-scatter
  const auto dw2 = contract<batch, seq>(gelu(h), dz);
  const auto dh = gelu_backward(contract<hidden>(dz, w2), h);
  const auto dw1 = contract<batch, seq>(full, dh);     // Partial<dp>: each group has seen other sequences
  const X dx = backward_to<X>(contract<ffn>(dh, w1));  // reduce-scatter: the backward of the all-gather

  // Two all-gathers and two reduce-scatters of the activations of this group, with n ranks along tp and L bytes.
  std::vector<std::uint64_t> moved{(mesh.along<tp>().traffic() - start).moved};
  all_reduce(mesh.along<tp>(), moved);
  const std::size_t formula = 4 * static_cast<std::size_t>(mesh.size<tp>() - 1) * full.local().size() * sizeof(double);
  if (moved[0] != formula) throw std::runtime_error("the bytes differ from the formula");
  if (mesh.is_first()) {
    std::printf("dp x tp = %d x %d: %llu bytes over tp, by the formula 4 (n-1) L %zu\n", mesh.size<dp>(),
                mesh.size<tp>(), static_cast<unsigned long long>(moved[0]), formula);
  }
  return {result("out", out), result("dx", dx), result("dw1", dw1), result("dw2", dw2)};
}

// Runs it on a mesh of dp x tp, and on one rank.
void compare(Communicator& world) {
  const int dp_size = world.size() % 4 == 0 ? 2 : 1;
  Communicator alone = world.split(world.rank());  // every rank is a group of its own there
  std::vector<Result> expected;
  if (world.rank() == 0) expected = perceptron(Grid(alone, {1, 1}));
  const auto found = perceptron(Grid(world, {dp_size, world.size() / dp_size}));
  if (world.rank() != 0) return;
  std::printf("\n%-5s %-18s %-18s %s\n", "", "over dp", "over tp", "largest difference from one rank");
  for (std::size_t i = 0; i < found.size(); ++i) {
    double scale = 0, difference = 0;
    for (std::size_t k = 0; k < expected[i].numbers.size(); ++k) {
      scale = std::max(scale, std::abs(expected[i].numbers[k]));
      difference = std::max(difference, std::abs(found[i].numbers[k] - expected[i].numbers[k]));
    }
    std::printf("%-5s %-18s %-18s %.1e of %.3f\n", found[i].name.c_str(), found[i].over_dp.c_str(),
                found[i].over_tp.c_str(), difference, scale);
    if (!(difference <= 1e-13 * scale)) throw std::runtime_error(found[i].name + " is not what one rank computes");
  }
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "A tensor-parallel perceptron, checked against one rank.", compare);
}
