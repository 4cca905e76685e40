// SPDX-License-Identifier: Apache-2.0
// What looking at layouts costs while a program runs. Elsewhere tens of microseconds and a cache of placements per
// operation; here the types are gone. How many instructions are left is counted in tests/instructions.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "../support/sanitized.hpp"
#include "meshwise/tensor/convert.hpp"
#include "meshwise/tensor/inside.hpp"
#include "meshwise/tensor/rename.hpp"
#include "pieces.hpp"

// Counts what a rank allocates; sanitizers bring an operator new of their own.
#ifndef MESHWISE_TEST_SANITIZED
namespace {
thread_local int allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// Not inlined, or g++ sees free beside new.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace test {
namespace {

using namespace pieces;

template <class... Ps>
using Square = Doubles<Dims<d0, d1>, Ps...>;

/// f is called with an lvalue, twice; the second time nothing may be allocated, from wherever, or communicated.
template <class X, class F>
void costs_nothing(const Rank& rank, const X& x, const F& f, const std::string& what) {
  const Traffic none = rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>();
  const std::size_t held = rank.mesh.memory().total().current;
  static_cast<void>(f(x));
  const int before = allocations;
  const auto y = f(x);
  const int made = allocations - before;
  require(made == 0 && rank.mesh.memory().total().current == held, what + ": memory");
  require(y.local().empty() || !y.unique(), what + ": storage is shared");
  require(rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() == none, what + ": traffic");
}

TEST_CASE("conversions that are free allocate nothing and communicate nothing") {
  for (const GridSize size : {GridSize{1, 1}, {1, 2}, {1, 3}}) {
    on_grid(size, [](const Rank& rank) {
      rank.mesh.set_checks(Checks::light);  // comparing across ranks is not free
      for (const Extents<Dims<d0, d1>>& extents : {Extents<Dims<d0, d1>>{6, 4}, {1, 2}, {0, 3}}) {
        const auto whole = rank.integers<Square<>>(extents);
        const auto split_rows = rank.integers<Square<Shard<d0, tp>>>(extents);
        const auto owed = rank.integers<Square<Partial<tp>>>(extents);
        costs_nothing(
            rank, whole, [](const auto& x) { return convert<Replicate<tp>>(x); }, "an equal layout");
        costs_nothing(
            rank, split_rows, [](const auto& x) { return convert<Shard<d0, tp>>(x); }, "equal shards");
        costs_nothing(
            rank, whole, [](const auto& x) { return view_as<Shard<d0, tp>>(x); }, "rows of a whole");
        costs_nothing(
            rank, whole, [](const auto& x) { return convert<Shard<d1, dp>>(x); }, "a group of one");
        costs_nothing(
            rank, whole, [](const auto& x) { return convert<Partial<dp>>(x); }, "a sum of one");
        costs_nothing(
            rank, split_rows, [](const auto& x) { return rename<d0, d2>(x); }, "another name");
        costs_nothing(
            rank, owed, [](const auto& x) { return inside<tp>(x); }, "inside");
        const auto parts = inside<tp>(owed);
        costs_nothing(
            rank, parts, [&](const auto& x) { return outside<Partial<tp>>(rank.mesh, x); }, "outside");
      }
    });
  }
}

TEST_CASE("what is left of a conversion is the collective: nothing is looked up or made anew each time") {
  on_grid({1, 3}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::light);
    const auto rows = rank.integers<Square<Shard<d0, tp>>>({300, 40});
    const auto zigzag = rank.integers<Square<Shard<d0, Zigzag<tp>>>>({300, 40});
    const auto owed = rank.integers<Square<Partial<tp>>>({300, 40});
    int before = 0;
    for (int k = 0; k < 6; ++k) {
      if (k == 3) before = allocations;
      static_cast<void>(convert<Replicate<tp>>(rows));
      static_cast<void>(convert<Shard<d1, tp>>(rows));
      static_cast<void>(convert<Replicate<tp>>(owed));
      static_cast<void>(convert<Shard<d1, tp>>(owed));
      static_cast<void>(convert<Shard<d0, tp>>(zigzag));
    }
    require(allocations == before, std::to_string(allocations - before) + " allocations");
  });
}

}  // namespace
}  // namespace test
#endif
