// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/replicas.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "meshwise/tensor/from_global.hpp"
#include "meshwise/tensor/inside.hpp"
#include "support.hpp"

namespace test {
namespace {

using Square = Dims<d0, d1>;
template <class... Ps>
using T = Tensor<double, Square, On<Ps...>>;

Traffic spent(const Rank& rank) {
  return rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() + rank.mesh.world().traffic();
}

template <class X>
void check_sound(const Rank& rank, const Extents<Square>& extents) {
  const X x = rank.reals<X>(extents);
  const Traffic before = spent(rank);
  check_replicas(x);
  require(spent(rank) == before, "not counted");
}

TEST_CASE("equal replicas pass at every level, and cost no counted traffic") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      for (const Checks checks : {Checks::none, Checks::light, Checks::communicating}) {
        rank.mesh.set_checks(checks);
        for (const Extents<Square>& extents : {Extents<Square>{5, 7}, {2, 1}, {0, 3}, {1, 0}}) {
          check_sound<T<>>(rank, extents);
          check_sound<T<Shard<d0, tp>>>(rank, extents);
          check_sound<T<Shard<d0, Zigzag<dp>>, Shard<d1, tp>>>(rank, extents);
          check_sound<T<Shard<d1, tp, dp>>>(rank, extents);
          check_sound<T<Partial<tp>>>(rank, extents);
          check_sound<T<Partial<dp>, Partial<tp>>>(rank, extents);
        }
        check_replicas(Tensor<float, Dims<>, On<>>(rank.mesh, {}));
      }
    });
  }
}

TEST_CASE("the first element that differs, wherever it is in a long piece") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{8191}, std::size_t{8192}, std::size_t{20000}}) {
    on_grid({1, 4}, [at](const Rank& rank) {
      T<> x(rank.mesh, {3, 7000});
      if (rank.mesh.coordinate<tp>() == 2) {
        x.mutable_local()[at] = -0.0;
        x.mutable_local()[20999] = 1;
      }
      const std::string text = error_of([&] { check_replicas(x); });
      require(contains(text, "check_replicas (rank " + std::to_string(rank.mesh.coordinate<tp>()) + ", axis tp)"),
              text);
      require(contains(text, "at test::d0 " + std::to_string(at / 7000) + ", test::d1 " + std::to_string(at % 7000) +
                                 " first 0 (0x0000000000000000) on rank 0 (tp 0) and -0 (0x8000000000000000) on rank "
                                 "2 (tp 2)"),
              text);
    });
  }
}

TEST_CASE("indices are global ones, by whatever rule the other axes cut") {
  on_grid({2, 2}, [](const Rank& rank) {
    auto x = rank.integers<T<Shard<d0, Striped<tp>>>>({7, 2});
    const std::size_t row = x.positions<d0>().at(1);
    if (rank.mesh.coordinate<dp>() == 1) x.mutable_local()[3] += 1;
    const std::string text = error_of([&] { check_replicas(x); });
    require(contains(text, "at test::d0 " + std::to_string(row) + ", test::d1 1 first "), text);
    require(contains(text, "(dp 0)") && contains(text, "(dp 1)"), text);
  });
}

TEST_CASE("a number, and extents that differ across ranks") {
  on_grid({1, 2}, [](const Rank& rank) {
    Tensor<float, Dims<>, On<>> loss(rank.mesh, {});
    loss.mutable_local()[0] = rank.mesh.coordinate<tp>() == 0 ? 0.5f : std::nextafter(0.5f, 1.0f);
    const std::string text = error_of([&] { check_replicas(loss); });
    require(contains(text, "at its only element first 0.5 (0x3f000000) on rank 0 (tp 0) and 0.50000006 (0x3f000001)"),
            text);
    const T<> x(rank.mesh, {4, rank.mesh.coordinate<tp>() == 0 ? 1u : 2u});
    require(contains(error_of([&] { check_replicas(x); }),
                     "the same extents on all ranks, found \"test::d0 4, test::d1 1\" on rank 0 and "
                     "\"test::d0 4, test::d1 2\" on rank 1"),
            "extents");
  });
}

TEST_CASE("other claims that ranks hold the same are compared in communicating checks") {
  on_grid({1, 2}, [](const Rank& rank) {
    std::vector<double> whole(6, 1.5);
    whole[5] += rank.mesh.coordinate<tp>();
    Tensor<double, Square, Layout<Mesh<dp>>> piece(rank.mesh.without<tp>(), {1, 1});
    piece.mutable_local()[0] = rank.mesh.coordinate<tp>();
    rank.mesh.set_checks(Checks::light);
    static_cast<void>(from_global<T<>>(rank.mesh, {2, 3}, whole));
    static_cast<void>(outside<Replicate<tp>>(rank.mesh, piece));
    rank.mesh.set_checks(Checks::communicating);
    std::string text = error_of([&] { static_cast<void>(from_global<T<>>(rank.mesh, {2, 3}, whole)); });
    require(contains(text, "from_global (rank ") && contains(text, "at test::d0 1, test::d1 2 first 1.5 ("), text);
    text = error_of([&] { static_cast<void>(outside<Replicate<tp>>(rank.mesh, piece)); });
    require(contains(text, "outside (rank ") && contains(text, "at test::d0 0, test::d1 0 first 0 ("), text);
    // What one rank refuses, the others hear of.
    const std::size_t mine = rank.mesh.coordinate<tp>() == 0 ? 6 : 7;
    const char* const by = rank.mesh.coordinate<tp>() == 1 ? "expected 6 elements" : "stopped by rank 1: ";
    text = error_of([&] { static_cast<void>(from_global<T<>>(rank.mesh, {2, 3}, std::vector<double>(mine))); });
    require(contains(text, by) && contains(text, "found 7 elements"), text);
    const Tensor<double, Square, Layout<Mesh<dp>>> part(rank.mesh.without<tp>(), {1, mine});
    text = error_of([&] { static_cast<void>(outside<Shard<d1, tp>>(rank.mesh, part, 12)); });
    require(contains(text, "expected 6 indices, this rank's part of 12, found 7"), text);
    static_cast<void>(outside<Partial<tp>>(rank.mesh, piece));
    static_cast<void>(from_global<T<Shard<d1, tp>>>(rank.mesh, {2, 3}, whole));
  });
}

}  // namespace
}  // namespace test
