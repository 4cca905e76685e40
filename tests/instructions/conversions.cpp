// SPDX-License-Identifier: Apache-2.0
// Conversions and the collectives they come down to, for one rank of four whose waits return at once; to be run under
// callgrind with collection toggled by the functions of namespace `measured`. Every dump is one measurement, described
// by what was measured: `NAME BYTES conversion|collective|allocation CALLS`, BYTES of the rank's larger buffer.

#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "instant.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/tensor/convert.hpp"

struct row : meshwise::dim {};
struct column : meshwise::dim {};

using namespace meshwise;

using Grid = Mesh<tp>;
using Rows = Shard<row, tp>;
using Columns = Shard<column, tp>;
using Whole = Replicate<tp>;
using Owed = Partial<tp>;
template <class P>
using Matrix = Tensor<float, Dims<row, column>, Layout<Grid, P>>;
using In = std::span<const float>;
using Out = std::span<float>;

// Callgrind collects inside of these. None of them may call another one, nor a function with one of them in its name.
namespace measured {

[[gnu::noinline]] Matrix<Whole> all_reduce_of_an_rvalue(Matrix<Owed>&& x) { return convert<Whole>(std::move(x)); }
[[gnu::noinline]] Matrix<Whole> all_reduce(const Matrix<Owed>& x) { return convert<Whole>(x); }
[[gnu::noinline]] Matrix<Rows> reduce_scatter(const Matrix<Owed>& x) { return convert<Rows>(x); }
[[gnu::noinline]] Matrix<Whole> all_gather(const Matrix<Rows>& x) { return convert<Whole>(x); }
[[gnu::noinline]] Matrix<Columns> all_to_all(const Matrix<Rows>& x) { return convert<Columns>(x); }

[[gnu::noinline]] void raw_all_reduce_in_place(Communicator& line, Out data) { meshwise::all_reduce(line, data); }
[[gnu::noinline]] void raw_all_reduce(Communicator& line, In in, Out out) { meshwise::all_reduce(line, in, out); }
[[gnu::noinline]] void raw_reduce_scatter(Communicator& line, In in, Out out) {
  meshwise::reduce_scatter(line, in, out);
}
[[gnu::noinline]] void raw_all_gather(Communicator& line, In in, Out out) { meshwise::all_gather(line, in, out); }
/// A collective given as data.
[[gnu::noinline]] void raw_call(Communicator& line, const Call& call) { line.run(call); }

[[gnu::noinline]] Storage allocation(Heap& heap, std::size_t bytes) { return heap.allocate(bytes); }

}  // namespace measured

namespace {

constexpr int calls = 8;
constexpr std::size_t sizes[] = {1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

/// Counts the instructions of f's call of a measured function; once before for what is made once only.
template <class F>
void measure(const std::string& name, std::size_t bytes, const char* what, const F& f) {
  f();
  CALLGRIND_ZERO_STATS;
  for (int i = 0; i < calls; ++i) f();
  const std::string title = name + " " + std::to_string(bytes) + " " + what + " " + std::to_string(calls);
  CALLGRIND_DUMP_STATS_AT(title.c_str());
}

void require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "instructions: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
void fill(T& x) {
  float value = 0;
  for (float& e : x.mutable_local()) e = value = value < 12 ? value + 1 : 0;
}

/// One conversion out of place beside the collective on the same buffers. The heap gives every result the memory of the
/// one before.
template <class From, class To, class Raw>
void compare(const std::string& name, const Grid& mesh, const Extents<Dims<row, column>>& extents,
             Matrix<To> (*converted)(const Matrix<From>&), const Raw& raw) {
  Communicator& line = mesh.along<tp>();
  Matrix<From> x(mesh, extents);
  fill(x);
  std::optional<Matrix<To>> y(Matrix<To>(mesh, extents));
  const std::size_t bytes = std::max(x.local().size(), y->local().size()) * sizeof(float);
  const std::size_t result = y->local().size_bytes();
  const float* const place = y->local().data();

  std::fill(y->mutable_local().begin(), y->mutable_local().end(), 0.0F);
  Traffic before = line.traffic();
  raw(line, x.local(), y->mutable_local());
  const Traffic direct = line.traffic() - before;
  const std::vector<float> expected(y->local().begin(), y->local().end());
  std::fill(y->mutable_local().begin(), y->mutable_local().end(), 0.0F);
  y.reset();
  before = line.traffic();
  y.emplace(converted(x));
  require(y->local().data() == place, name + " does not reuse the memory of its last result");
  require(line.traffic() - before == direct, name + " does not move what the collective moves");
  require(std::memcmp(expected.data(), y->local().data(), result) == 0, name + " differs from the collective");
  require(std::count(expected.begin(), expected.end(), 0.0F) < std::ssize(expected), name + " writes nothing");

  measure(name, bytes, "collective", [&] { raw(line, x.local(), y->mutable_local()); });
  y.reset();
  measure(name, bytes, "conversion", [&] { (void)converted(x); });
  measure(name, bytes, "allocation", [&] { (void)measured::allocation(mesh.memory(), result); });
}

void compare_in_place(const Grid& mesh, const Extents<Dims<row, column>>& extents) {
  Communicator& line = mesh.along<tp>();
  Matrix<Owed> x(mesh, extents);
  const std::string name = "all_reduce_of_an_rvalue";
  const std::size_t bytes = x.local().size_bytes();
  const float* const place = x.local().data();
  measure(name, bytes, "collective", [&] { measured::raw_all_reduce_in_place(line, x.mutable_local()); });
  measure(name, bytes, "conversion", [&] {
    const Matrix<Whole> y = measured::all_reduce_of_an_rvalue(std::move(x));
    require(y.local().data() == place, "an rvalue is not reduced in place");
    x = Matrix<Owed>(mesh, extents, y.storage(), 0);
  });
}

/// Rows become columns. The pieces are strided, which no span can say: beside it stands the collective of the same
/// regions.
void compare_exchange(const Grid& mesh, const Extents<Dims<row, column>>& extents) {
  const detail::ExchangeBox box({extents[0], 4, 0}, {extents[1], 4, 0}, true, 4, 1, 1, 1);
  Call call;
  call.shape.operation = Operation::all_to_all;
  call.element = ElementKind::f32;
  call.element_size = sizeof(float);
  call.count = box.size();
  call.regions = {&detail::locate_exchange, &box};
  compare<Rows, Columns>("all_to_all", mesh, extents, measured::all_to_all, [&](Communicator& line, In in, Out out) {
    call.input = in.data();
    call.output = out.data();
    measured::raw_call(line, call);
  });
}

}  // namespace

int main() {
  Communicator world(std::make_unique<test::Instant>(1, 4));
  const Grid mesh(world, {4});
  for (const std::size_t bytes : sizes) {
    const Extents<Dims<row, column>> extents{bytes / sizeof(float) / 64, 64};
    compare_in_place(mesh, extents);
    compare<Owed, Whole>("all_reduce", mesh, extents, measured::all_reduce, measured::raw_all_reduce);
    compare<Owed, Rows>("reduce_scatter", mesh, extents, measured::reduce_scatter, measured::raw_reduce_scatter);
    compare<Rows, Whole>("all_gather", mesh, extents, measured::all_gather, measured::raw_all_gather);
    compare_exchange(mesh, {4 * extents[0], extents[1]});
  }
}
