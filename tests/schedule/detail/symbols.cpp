// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/detail/symbols.hpp"

#include <doctest/doctest.h>

#include <set>

#include "../all_shapes.hpp"

using namespace meshwise;
using detail::Memory;
using detail::Places;
using detail::Symbols;

TEST_CASE("places are numbered densely, and shared exactly where memory is") {
  for (int p = 1; p <= 5; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      std::vector<int> scratch(static_cast<std::size_t>(p), 0);
      for (int r = 0; r < p; ++r) scratch[static_cast<std::size_t>(r)] = r % 3;
      const Places places(shape, scratch);
      std::vector<Piece> pieces;
      for (int r = 0; r < p; ++r) {
        for (int s = 0; s < input_slots(shape, r); ++s) pieces.push_back(Piece{r, Buffer::input, s, 1});
        for (int s = 0; s < output_slots(shape, r); ++s) pieces.push_back(Piece{r, Buffer::output, s, 1});
        for (int s = 0; s < r % 3; ++s) pieces.push_back(Piece{r, Buffer::scratch, s, 1});
        CHECK(!places.contains(Piece{r, Buffer::scratch, r % 3, 1}));
        CHECK(!places.contains(Piece{r, Buffer::output, 0, output_slots(shape, r) + 1}));
        CHECK(!places.contains(Piece{r, Buffer::output, 0, 0}));
        CHECK(!places.contains(Piece{r, Buffer::output, -1, 1}));
      }
      CHECK(pieces.size() == places.size());
      CHECK(!places.contains(Piece{p, Buffer::output, 0, 1}));
      CHECK(!places.contains(Piece{-1, Buffer::output, 0, 1}));
      for (const Piece& a : pieces) {
        CHECK(places.contains(a));
        CHECK(places.number(a, 0) < places.size());
        for (const Piece& b : pieces) {
          CHECK((places.number(a, 0) == places.number(b, 0)) == (place(shape, a) == place(shape, b)));
        }
      }
    }
  }
}

TEST_CASE("combinations keep order, multiplicity and the shape of the fold") {
  Symbols symbols;
  const int a = symbols.contribution(7, 0);
  const int b = symbols.contribution(7, 1);
  const int c = symbols.contribution(7, 2);
  const int d = symbols.contribution(7, 3);
  CHECK(symbols.combination({a}) == a);
  const int left = symbols.combination({symbols.combination({a, b}), c, d});
  CHECK(symbols.block(left) == 7);
  CHECK(symbols.leaves(left) == 4);
  CHECK(symbols.left_fold(left));
  CHECK(symbols.contributors(left) == std::vector<int>{0, 1, 2, 3});
  const int tree = symbols.combination({symbols.combination({a, b}), symbols.combination({c, d})});
  CHECK(symbols.contributors(tree) == std::vector<int>{0, 1, 2, 3});
  CHECK(!symbols.left_fold(tree));
  const int right = symbols.combination({a, symbols.combination({b, c})});
  CHECK(!symbols.left_fold(right));
  const int rotated = symbols.combination({c, d, a});
  CHECK(symbols.left_fold(rotated));
  CHECK(symbols.contributors(rotated) == std::vector<int>{2, 3, 0});
  const int twice = symbols.combination({left, left});
  CHECK(symbols.leaves(twice) == 8);
  CHECK(!symbols.ascending(twice));
  CHECK((symbols.ascending(left) && symbols.ascending(tree) && symbols.ascending(right)));
  CHECK(!symbols.ascending(rotated));
  CHECK((symbols.first_rank(tree) == 0 && symbols.last_rank(tree) == 3));
  CHECK((symbols.first_rank(rotated) == 2 && symbols.last_rank(rotated) == 0));
}

TEST_CASE("a fold at once, one step by step, and others") {
  Symbols symbols;
  const int a = symbols.contribution(0, 0);
  const int b = symbols.contribution(0, 1);
  const int c = symbols.contribution(0, 2);
  CHECK((symbols.at_once(a) && symbols.stepwise(a)));
  const int pair = symbols.combination({a, b});
  CHECK((symbols.at_once(pair) && symbols.stepwise(pair)));
  const int flat = symbols.combination({a, b, c});
  CHECK((symbols.at_once(flat) && !symbols.stepwise(flat)));
  const int steps = symbols.combination({pair, c});
  CHECK((!symbols.at_once(steps) && symbols.stepwise(steps) && symbols.left_fold(steps)));
  const int right = symbols.combination({a, symbols.combination({b, c})});
  CHECK((!symbols.at_once(right) && !symbols.stepwise(right)));
  CHECK((symbols.depth(a) == 0 && symbols.depth(pair) == 1 && symbols.depth(flat) == 1));
  CHECK((symbols.depth(steps) == 2 && symbols.depth(right) == 2));
}

TEST_CASE("equal combinations are one value, and pairs have no order in the form") {
  Symbols symbols;
  std::vector<int> leaf;
  for (int r = 0; r < 200; ++r) leaf.push_back(symbols.contribution(r % 2, r / 2));
  std::set<int> values;
  for (int repetition = 0; repetition < 2; ++repetition) {
    for (int i = 0; i < 200; i += 2) {
      for (int k = 0; k < 200; k += 4) values.insert(symbols.combination({leaf[std::size_t(i)], leaf[std::size_t(k)]}));
    }
    CHECK(values.size() == 100 * 50);
  }
  const int a = leaf[0];
  const int b = leaf[2];
  const int c = leaf[4];
  const auto sum = [&](std::vector<int> operands) { return symbols.combination(operands); };
  CHECK(sum({a, b}) != sum({b, a}));
  CHECK(symbols.form(sum({a, b})) == symbols.form(sum({b, a})));
  CHECK(symbols.form(sum({sum({b, a}), c})) == symbols.form(sum({c, sum({a, b})})));
  CHECK(symbols.form(sum({b, a, c})) == symbols.form(sum({a, b, c})));
  CHECK(symbols.form(sum({a, c, b})) != symbols.form(sum({a, b, c})));
  CHECK(symbols.form(sum({sum({a, b}), c})) != symbols.form(sum({a, b, c})));
  CHECK(symbols.form(sum({sum({a, b}), c})) != symbols.form(sum({a, sum({b, c})})));
  CHECK(symbols.form(a) == a);
}

TEST_CASE("the number of leaves saturates instead of overflowing") {
  Symbols symbols;
  int value = symbols.contribution(0, 0);
  for (int i = 0; i < 100; ++i) value = symbols.combination({value, value});
  CHECK(symbols.leaves(value) == std::int64_t{1} << 40);
}

TEST_CASE("memory begins with the inputs and performs moves element by element") {
  const Shape shape{Operation::all_reduce, 3, 0, false};
  Memory memory(shape, {1, 1, 1});
  CHECK(memory.value(Piece{1, Buffer::output, 0, 1}, 0) == Symbols::undefined);
  CHECK(memory.symbols.block(memory.value(Piece{1, Buffer::input, 2, 1}, 0)) == 2);
  memory.perform(Move{0,
                      0,
                      {Piece{2, Buffer::input, 0, 3}, Piece{1, Buffer::input, 0, 3}},
                      {Piece{0, Buffer::output, 0, 3}, Piece{2, Buffer::output, 0, 3}}});
  for (int i = 0; i < 3; ++i) {
    const int value = memory.value(Piece{0, Buffer::output, 0, 3}, i);
    CHECK(value == memory.value(Piece{2, Buffer::output, i, 1}, 0));
    CHECK(memory.symbols.block(value) == i);
    CHECK(memory.symbols.contributors(value) == std::vector<int>{2, 1});
  }
}
