// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/blocks.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using namespace meshwise;
using namespace meshwise::detail;

std::vector<std::size_t> elements_of(const Region& region) {
  std::vector<std::size_t> result;
  for (std::size_t r = 0; r < region.repeat; ++r) {
    for (std::size_t i = 0; i < region.run; ++i) result.push_back(region.offset + r * region.stride + i);
  }
  return result;
}

TEST_CASE("the cuts of a group are parts of the global extent, counted from the group's piece") {
  for (std::size_t extent = 0; extent <= 20; ++extent) {
    for (std::size_t outer = 1; outer <= 3; ++outer) {
      for (std::size_t n = 1; n <= 3; ++n) {
        for (std::size_t group = 0; group < outer; ++group) {
          const Cut cut{extent, outer * n, group * n};
          const Range piece = split(extent, outer, group);
          CHECK(cut.begin(0) == 0);
          CHECK(cut.begin(n) == piece.size);
          for (std::size_t k = 0; k < n; ++k) {
            const Range part = split(extent, outer * n, group * n + k);
            CHECK(cut.begin(k) + piece.begin == part.begin);
            CHECK(cut.size(k) == part.size);
          }
        }
      }
    }
  }
}

TEST_CASE("the parts of a box cover it once, and copying out and in restores it") {
  for (const std::size_t extent : {std::size_t{0}, std::size_t{2}, std::size_t{5}, std::size_t{7}}) {
    for (const std::size_t outer : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      for (const std::size_t inner : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
        const CutBox box{{extent, 3, 0}, 3, outer, inner};
        const std::size_t size = extent * outer * inner;
        std::vector<int> whole(size), copy(size, -1), held(size, 0);
        for (std::size_t i = 0; i < size; ++i) whole[i] = static_cast<int>(i);
        for (std::size_t k = 0; k < 3; ++k) {
          for (const std::size_t at : elements_of(box.inside(k))) ++held[at];
          CHECK(box.alone(k).size() == box.inside(k).size());
          std::vector<int> piece(box.alone(k).size());
          copy_out(box.inside(k), sizeof(int), reinterpret_cast<const std::byte*>(whole.data()),
                   reinterpret_cast<std::byte*>(piece.data()));
          copy_in(box.inside(k), sizeof(int), reinterpret_cast<const std::byte*>(piece.data()),
                  reinterpret_cast<std::byte*>(copy.data()));
        }
        CHECK(held == std::vector<int>(size, 1));
        CHECK(copy == whole);
      }
    }
  }
}

TEST_CASE("an exchange moves each element to where its index says, in either order of the two dims") {
  constexpr std::size_t n = 3, outer = 2, between = 2, inner = 3;
  for (const bool from_is_first : {true, false}) {
    for (const std::size_t a : {std::size_t{0}, std::size_t{2}, std::size_t{5}}) {
      for (const std::size_t b : {std::size_t{1}, std::size_t{4}}) {
        ExchangeBox box{{a, n, 0}, {b, n, 0}, from_is_first, n, outer, between, inner};
        // The element at index (o, f, m, t, i) of the whole, where f is cut before and t afterwards.
        const auto name = [&](std::size_t o, std::size_t f, std::size_t m, std::size_t t, std::size_t i) {
          return static_cast<int>((((o * 10 + f) * 10 + m) * 10 + t) * 10 + i);
        };
        const auto piece = [&](Range f_range, Range t_range) {
          std::vector<int> result;
          const Range first = from_is_first ? f_range : t_range, second = from_is_first ? t_range : f_range;
          for (std::size_t o = 0; o < outer; ++o) {
            for (std::size_t p = first.begin; p < first.end(); ++p) {
              for (std::size_t m = 0; m < between; ++m) {
                for (std::size_t q = second.begin; q < second.end(); ++q) {
                  for (std::size_t i = 0; i < inner; ++i) {
                    result.push_back(from_is_first ? name(o, p, m, q, i) : name(o, q, m, p, i));
                  }
                }
              }
            }
          }
          return result;
        };
        for (std::size_t r = 0; r < n; ++r) {
          const std::vector<int> wanted = piece({0, a}, split(b, n, r));
          std::vector<int> found(wanted.size(), -1);
          for (std::size_t s = 0; s < n; ++s) {
            const std::vector<int> source = piece(split(a, n, s), {0, b});
            const Shape shape;
            const Region from = locate_exchange(&box, shape, Buffer::input, static_cast<int>(s), static_cast<int>(r));
            const Region to = locate_exchange(&box, shape, Buffer::output, static_cast<int>(r), static_cast<int>(s));
            REQUIRE(from.size() == to.size());
            const auto out = elements_of(from), in = elements_of(to);
            for (std::size_t i = 0; i < out.size(); ++i) found[in[i]] = source[out[i]];
          }
          CHECK(found == wanted);
        }
      }
    }
  }
}

}  // namespace
