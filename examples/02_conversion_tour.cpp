// SPDX-License-Identifier: Apache-2.0
// A tour of conversions: the old and the new layout of a tensor decide which collective runs, and what it costs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/layout/name.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/generate.hpp"
#include "support/command_line.hpp"

// Dimensions of your own are one line each.
struct row : meshwise::dim {};
struct column : meshwise::dim {};

namespace {

using namespace meshwise;

using Grid = Mesh<tp>;
using Matrix = Tensor<float, Dims<row, column>, Layout<Grid>>;  // no axis mentioned: every rank holds all of it

// The matrix in another layout. Partial: each rank holds its own rows and zeros elsewhere; the matrix is the sum.
template <class P>
auto placed(const Matrix& x) {
  if constexpr (std::is_same_v<P, Partial<tp>>) {
    return view_as<Partial<tp>>(view_as<Shard<row, tp>>(x));
  } else {
    return view_as<P>(x);  // view_as is a conversion that must be free, or it does not compile
  }
}

// The pieces of all ranks, as rows x columns; of many ranks the first eight.
template <class T>
std::string pieces(const T& x) {
  Communicator& world = x.mesh().world();
  const std::vector<std::uint64_t> mine{x.template range<row>().size, x.template range<column>().size};
  std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(world.size()));
  all_gather(world, mine, all);
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < 16; i += 2) {
    text += ' ' + std::to_string(all[i]) + 'x' + std::to_string(all[i + 1]);
  }
  return all.size() > 16 ? text + " ..." : text;
}

// Converts the matrix from one placement to another and prints a line about it.
template <class From, class To>
void tour(const Matrix& x) {
  const auto before = placed<From>(x);
  constexpr Transition kind = transition_of<typename decltype(before)::layout, To>;
  Communicator& line = x.mesh().along<tp>();

  const Traffic start = line.traffic();
  const auto after = convert<To>(before);
  std::vector<std::uint64_t> moved{(line.traffic() - start).moved};  // counted where bytes are copied
  all_reduce(line, moved);                                           // of all ranks together

  const int ranks = line.size();
  const double bytes = static_cast<double>(x.size() * sizeof(float));
  const double formula = transition_volume(kind, ranks, bytes) / ranks;
  const double measured = static_cast<double>(moved[0]) / ranks;
  const std::string held = pieces(after);
  if (x.mesh().is_first()) {
    std::printf("%-18s %-18s %-15s %9.1f %9.1f  %s\n", name_of<From>().c_str(), name_of<To>().c_str(),
                transition_name(kind), measured, formula, held.c_str());
  }
  if (std::abs(measured - formula) > 1e-6) throw std::runtime_error("the bytes differ from the formula");

  const auto whole = convert<Replicate<tp>>(after);
  if (!std::equal(x.local().begin(), x.local().end(), whole.local().begin())) {
    throw std::runtime_error("a conversion has changed the matrix");
  }
}

void tours(Communicator& world) {
  const Grid mesh(world, {world.size()});
  // One row too many to be split evenly: then some ranks hold one more than others. Large enough for the algorithms whose
  // bytes the formula counts: a few KiB take a shorter way, on which every rank reads everybody's whole input.
  const std::size_t ranks = static_cast<std::size_t>(world.size());
  const Matrix x = generate<Matrix>(mesh, {40 * ranks + 1, 30 * ranks}, [](const auto& i) { return i.linear; });
  if (world.rank() == 0) {
    std::printf("a matrix of %zu x %zu float, %zu bytes, on %d ranks\n\n", x.extent<row>(), x.extent<column>(),
                x.size() * sizeof(float), world.size());
    std::printf("%-18s %-18s %-15s %9s %9s  %s\n", "from", "to", "by", "bytes", "formula",
                " rows x columns on each rank");
  }
  using R = Replicate<tp>;
  using Rows = Shard<row, tp>;
  using Columns = Shard<column, tp>;
  using P = Partial<tp>;
  tour<R, Rows>(x);
  tour<R, Columns>(x);
  tour<R, P>(x);
  tour<Rows, P>(x);
  tour<Rows, Rows>(x);
  tour<Rows, R>(x);
  tour<Columns, R>(x);
  tour<Rows, Columns>(x);
  tour<Columns, Rows>(x);
  tour<P, R>(x);
  tour<P, Rows>(x);
  tour<P, Columns>(x);
  if (world.rank() == 0) std::printf("\nbytes: moved, mean of all ranks. The matrix was the same in every layout.\n");
}

}  // namespace

int main(int count, char** arguments) {
  return examples::main(count, arguments, "Shows what conversions between layouts do and cost.", tours);
}
