// SPDX-License-Identifier: Apache-2.0
// Conversions of tensors beside the collectives they come down to: `conversion/NAME/thread/RANKS/BYTES`, BYTES of the
// tensor when replicated.
//
// Time: of the conversion, on the slowest rank, with the allocation of its result. Counters: raw = median seconds of
// the collective called directly on the same buffers; ratio = time of the conversion / raw, the median over alternating
// pairs. Along columns the pieces of a tensor are strided: there the raw collective moves the same bytes but leaves
// them in rank order, which is not the tensor.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/tensor/convert.hpp"
#include "support/team.hpp"

struct row : meshwise::dim {};
struct column : meshwise::dim {};

namespace {

using namespace meshwise;

using Grid = Mesh<tp>;
using Rows = Shard<row, tp>;
using Columns = Shard<column, tp>;
using Whole = Replicate<tp>;
using Owed = Partial<tp>;
template <class P>
using Matrix = Tensor<float, Dims<row, column>, Layout<Grid, P>>;

constexpr std::size_t columns = 64;

template <class From, class To, class Raw>
void run(benchmark::State& state, int ranks, std::size_t bytes, const Raw& raw) {
  bench::Team team(state, ranks);
  team.launch([&](Communicator& world) {
    const Grid mesh(world, {world.size()});
    Communicator& line = mesh.along<tp>();
    const Matrix<From> x(mesh, {bytes / sizeof(float) / columns, columns});
    std::optional y(convert<To>(x));
    const int batch = bench::batch_of(bytes);
    // The heap gives the result of the conversion the memory of the last one, which is where the collective writes.
    const auto directly = [&] { raw(line, x.local(), y->mutable_local()); };
    const auto converted = [&] {
      y.reset();
      y.emplace(convert<To>(x));
    };
    std::vector<double> raws, ratios;
    for (int pair = 0; team.next(world, batch); ++pair) {
      // Each goes first in every other pair.
      double direct = pair % 2 == 0 ? team.time(world, batch, directly) : 0;
      const double conversion = team.time(world, batch, converted);
      if (pair % 2 != 0) direct = team.time(world, batch, directly);
      team.count(world, conversion);
      raws.push_back(direct / batch);
      ratios.push_back(conversion / direct);
    }
    if (world.rank() != 0) return;
    state.counters["raw"] = bench::median(raws);
    state.counters["ratio"] = bench::median(ratios);
  });
}

template <class From, class To, class Raw>
void add(const std::string& what, const Raw& raw) {
  for (const int ranks : {2, 4}) {
    for (std::size_t bytes = 1 << 10; bytes <= std::size_t{16} << 20; bytes *= bytes == 1 << 10 ? 16 : 32) {
      const std::string name = "conversion/" + what + "/thread/" + std::to_string(ranks) + "/" + std::to_string(bytes);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { run<From, To>(state, ranks, bytes, raw); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const auto gather = [](Communicator& line, auto in, auto out) { all_gather(line, in, out); };
  const auto reduce = [](Communicator& line, auto in, auto out) { all_reduce(line, in, out); };
  const auto scatter = [](Communicator& line, auto in, auto out) { reduce_scatter(line, in, out); };
  const auto exchange = [](Communicator& line, auto in, auto out) { all_to_all(line, in, out); };
  add<Rows, Whole>("all_gather_rows", gather);
  add<Columns, Whole>("all_gather_columns", gather);
  add<Owed, Whole>("all_reduce", reduce);
  add<Owed, Rows>("reduce_scatter_rows", scatter);
  add<Owed, Columns>("reduce_scatter_columns", scatter);
  add<Rows, Columns>("all_to_all", exchange);
  return bench::main(count, arguments);
}
