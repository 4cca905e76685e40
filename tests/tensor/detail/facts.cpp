// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/facts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "../support.hpp"
#include "meshwise/tensor/from_global.hpp"
#include "meshwise/tensor/lookup.hpp"
#include "meshwise/tensor/reshard.hpp"

namespace test {
namespace {

using Square = Dims<batch, seq>;
template <class... Ps>
using T = Tensor<float, Square, On<Ps...>>;

TEST_CASE("values in words, with their bits") {
  const auto text = [](auto value) {
    return detail::text_of_value<decltype(value)>(reinterpret_cast<const std::byte*>(&value));
  };
  CHECK(text(0.1) == "0.10000000000000001 (0x3fb999999999999a)");
  CHECK(text(-0.0f) == "-0 (0x80000000)");
  CHECK(text(fp16(1.5f)) == "1.5 (0x3e00)");
  CHECK(text(f8e4m3(-2.0f)).find("-2 (0x") == 0);
  CHECK(text(std::int64_t{-1}) == "-1 (0xffffffffffffffff)");
  CHECK(text(std::uint8_t{200}) == "200 (0xc8)");
  struct Pair {
    std::uint16_t a, b;
  };
  CHECK(text(Pair{1, 1}) == "(0x00010001)");
}

TEST_CASE("communicating checks find nothing wrong with a right program, and change no traffic") {
  for (const GridSize size : few_grids) {
    on_grid(size, [](const Rank& rank) {
      std::array<Traffic, 2> spent;
      for (const bool checked : {false, true}) {
        rank.mesh.set_checks(checked ? Checks::communicating : Checks::light);
        const Traffic before = rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() + rank.mesh.traffic<dp, tp>();
        const auto x = rank.integers<T<Shard<batch, dp, tp>>>({7, 5});
        const auto y = convert<Shard<seq, tp>>(x);
        const auto z = reshard<On<Shard<seq, Zigzag<dp>>, Partial<tp>>>(y);
        const std::vector<std::size_t> counts = [&] {
          std::vector<std::size_t> all(static_cast<std::size_t>(rank.mesh.size<tp>()), 0);
          all.back() = 7;
          return all;
        }();
        const auto c = convert<Shard<batch, Counted<tp>>>(convert<Replicate<tp>>(z), counts);
        require_equal(rank.denoted(c), array(35, [](std::size_t i) { return integer(i, 1); }), "value");
        spent[checked ? 1 : 0] =
            rank.mesh.traffic<dp>() + rank.mesh.traffic<tp>() + rank.mesh.traffic<dp, tp>() - before;
      }
      require(spent[0] == spent[1], "traffic");
    });
  }
}

/// The error of a program that differs on rank 1 of three.
template <class F>
std::string error_on(const Rank& rank, const F& program) {
  return error_of([&] { program(rank.mesh.coordinate<tp>() == 1); });
}

TEST_CASE("conversions of other extents, layouts and counts on a rank are errors that name both") {
  on_grid({1, 3}, [](const Rank& rank) {
    rank.mesh.set_checks(Checks::communicating);
    std::string text = error_on(rank, [&](bool odd) {
      static_cast<void>(convert<Replicate<tp>>(T<Shard<seq, tp>>(rank.mesh, {4, odd ? 7u : 6u})));
    });
    require(contains(text, "convert (rank ") && contains(text, "axis tp") &&
                contains(text,
                         "the same extents before on all ranks, found \"batch 4, seq 6\" on rank 0 and "
                         "\"batch 4, seq 7\" on rank 1"),
            text);
    // Both are all_gathers of as many elements.
    text = error_on(rank, [&](bool odd) {
      if (odd) {
        static_cast<void>(convert<Replicate<tp>>(T<Shard<seq, tp>>(rank.mesh, {3, 3})));
      } else {
        static_cast<void>(convert<Replicate<tp>>(T<Shard<batch, tp>>(rank.mesh, {3, 3})));
      }
    });
    require(contains(text,
                     "the same layout before on all ranks, found \"batch over tp\" on rank 0 and \"seq over tp\" on "
                     "rank 1"),
            text);
    text = error_on(rank, [&](bool odd) {
      const T<Partial<tp>> x(rank.mesh, {3, 3});
      if (odd) {
        static_cast<void>(convert<Shard<seq, tp>>(x));
      } else {
        static_cast<void>(convert<Replicate<tp>>(x));
      }
    });
    require(contains(text,
                     "the same layout afterwards on all ranks, found \"replicated\" on rank 0 and \"seq over tp\" on "
                     "rank 1"),
            text);
    text = error_on(rank, [&](bool odd) {
      const std::vector<std::size_t> counts =
          odd ? std::vector<std::size_t>{1, 1, 3} : std::vector<std::size_t>{3, 1, 1};
      static_cast<void>(convert<Shard<seq, Counted<tp>>>(T<Shard<seq, tp>>(rank.mesh, {2, 5}), counts));
    });
    require(contains(text, "\"batch 2, seq 5 in parts of 3 1 1\" on rank 0") &&
                contains(text, "\"batch 2, seq 5 in parts of 1 1 3\" on rank 1"),
            text);
    text = error_on(rank, [&](bool odd) {
      if (odd) {
        static_cast<void>(convert<Replicate<tp>>(Tensor<double, Square, On<Partial<tp>>>(rank.mesh, {3, 3})));
      } else {
        static_cast<void>(convert<Replicate<tp>>(T<Partial<tp>>(rank.mesh, {3, 3})));
      }
    });
    require(contains(text, "the same element on all ranks, found \"f32\" on rank 0 and \"f64\" on rank 1"), text);
    // A rank that refuses its own arguments does not leave the others waiting.
    text = error_on(rank, [&](bool odd) {
      const std::vector<std::size_t> counts = odd ? std::vector<std::size_t>{2, 3} : std::vector<std::size_t>{2, 2, 1};
      static_cast<void>(convert<Shard<seq, Counted<tp>>>(T<Shard<seq, tp>>(rank.mesh, {2, 5}), counts));
    });
    require(contains(text, "expected 3 counts") && contains(text, "found 2"), text);
    require(contains(text, "stopped by rank 1") == (rank.mesh.coordinate<tp>() != 1), text);

    const auto good = rank.integers<T<Shard<seq, tp>>>({2, 5});
    require_equal(rank.denoted(convert<Replicate<tp>>(good)), rank.denoted(good), "the ranks go on");
  });
}

TEST_CASE("routes of exchanges are compared by themselves") {
  on_grid({1, 2}, [](const Rank& rank) {
    const bool odd = rank.mesh.coordinate<tp>() == 1;
    Routes routes(2, {{0}, {1}}, {{0, 1}, {odd ? 1 : 0}});
    const std::string text = error_of([&] { detail::agree_on_routes(rank.mesh.along<tp>(), routes, 4); });
    require(contains(text, "exchange (rank ") && contains(text, "who holds and who wants which blocks"), text);
    detail::agree_on_routes(rank.mesh.along<tp>(), Routes(2, {{0}, {1}}, {{0, 1}, {1}}), 4);
  });
}

TEST_CASE("without checks a wrong index finds nothing and is zero") {
  on_grid({1, 2}, [](const Rank& rank) {
    const auto table = rank.reals<Tensor<double, Dims<vocab, hidden>, On<Shard<vocab, tp>>>>({3, 2});
    const auto ids = from_global<Tensor<int, Dims<batch>, On<>>>(rank.mesh, {3}, std::vector<int>{2, 7, -1});
    require(!error_of([&] { static_cast<void>(lookup<vocab>(table, ids)); }).empty(), "light");
    rank.mesh.set_checks(Checks::none);
    const auto rows = convert<Replicate<tp>>(lookup<vocab>(table, ids));
    for (std::size_t i = 2; i < 6; ++i) require(rows.local()[i] == 0, "nothing there");
    require(rows.local()[0] == real(4, 1) && rows.local()[1] == real(5, 1), "a row");
    const auto scores = rank.reals<Tensor<double, Dims<batch, vocab>, On<Shard<vocab, tp>>>>({3, 3});
    const auto picked = convert<Replicate<tp>>(pick<vocab>(scores, ids));
    require(picked.local()[0] == real(2, 1) && picked.local()[1] == 0 && picked.local()[2] == 0, "pick");
  });
}

}  // namespace
}  // namespace test
