// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/boxes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using namespace meshwise;
using Numbers = std::vector<std::size_t>;

/// The row-major positions of picked elements, by their definition.
Numbers picked_places(const Numbers& shape, const std::vector<Positions>& picked) {
  Numbers result{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Numbers deeper;
    for (const std::size_t before : result) {
      for (std::size_t i = 0; i < picked[d].size(); ++i) deeper.push_back(before * shape[d] + picked[d].at(i));
    }
    result = std::move(deeper);
  }
  return result;
}

void check(const Numbers& shape, const std::vector<Positions>& picked) {
  const Numbers places = picked_places(shape, picked);
  REQUIRE(detail::picked_size(picked) == places.size());
  Numbers runs;
  detail::each_run(shape, picked, [&](std::size_t at, std::size_t number, std::size_t run) {
    REQUIRE(number == runs.size());
    REQUIRE(run > 0);
    for (std::size_t i = 0; i < run; ++i) runs.push_back(at + i);
  });
  REQUIRE(runs == places);

  if (const auto region = detail::region_of(shape, picked)) {
    Numbers of_region;
    for (std::size_t i = 0; i < region->repeat; ++i) {
      for (std::size_t k = 0; k < region->run; ++k) of_region.push_back(region->offset + i * region->stride + k);
    }
    REQUIRE(of_region == places);
  }

  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  std::vector<int> array(size), piece(places.size(), -1), back(size, 0);
  for (std::size_t i = 0; i < size; ++i) array[i] = static_cast<int>(i) + 1;
  const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  detail::copy_picked(shape, picked, sizeof(int), bytes(array), bytes(piece));
  detail::copy_back(shape, picked, sizeof(int), bytes(piece), bytes(back));
  std::size_t copied = 0;
  for (const int value : back) copied += value != 0 ? 1U : 0U;
  REQUIRE(copied == places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    REQUIRE(piece[i] == array[places[i]]);
    REQUIRE(back[places[i]] == array[places[i]]);
  }
}

TEST_CASE("every rule along every dim of a box: runs, regions, copies") {
  for (const Numbers& shape : {Numbers{4, 5, 6}, {1, 7, 2}, {3, 1, 1}, {0, 4, 2}, {6, 0, 3}, {5, 6, 0}}) {
    std::vector<std::vector<Positions>> choices;
    for (const std::size_t n : shape) {
      const Positions all = Range{0, n};
      choices.push_back({all, floor_part(all, 2, 1), zigzag_part(all, 2, 0), stripe_part(all, 2, 0),
                         stripe_part(zigzag_part(all, 2, 1), 2, 1), floor_part(all, 3, 0)});
    }
    for (const Positions& a : choices[0]) {
      for (const Positions& b : choices[1]) {
        for (const Positions& c : choices[2]) check(shape, {a, b, c});
      }
    }
  }
  check({}, {});
}

TEST_CASE("what is a region, and what has to be packed") {
  const Positions four = Range{0, 4}, middle = Range{1, 2};
  const Numbers shape{4, 4, 4};
  const auto region = [&](const std::vector<Positions>& picked) { return detail::region_of(shape, picked); };
  const auto is = [](const auto& r, std::size_t offset, std::size_t run, std::size_t stride, std::size_t repeat) {
    return r && r->offset == offset && r->run == run && r->stride == stride && r->repeat == repeat;
  };
  CHECK(is(region({middle, four, four}), 16, 32, 32, 1));
  CHECK(is(region({four, middle, four}), 4, 8, 16, 4));
  CHECK(is(region({four, four, middle}), 1, 2, 4, 16));
  CHECK(is(region({stripe_part(four, 2, 1), four, four}), 16, 16, 32, 2));
  CHECK(is(region({Range{1, 1}, middle, middle}), 21, 2, 4, 2));
  CHECK(!region({middle, middle, middle}));
  CHECK(!detail::region_of(Numbers{8, 4}, std::vector<Positions>{zigzag_part(Range{0, 8}, 2, 0), four}));
  CHECK(is(region({four, four, stripe_part(four, 2, 1)}), 1, 1, 2, 32));
}

}  // namespace
