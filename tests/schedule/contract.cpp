// SPDX-License-Identifier: Apache-2.0
#include "meshwise/schedule/contract.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "all_shapes.hpp"

using namespace meshwise;

namespace {

static_assert(combines(Operation::all_reduce) && combines(Operation::reduce_scatter));
static_assert(!combines(Operation::all_gather) && !combines(Operation::broadcast) && !combines(Operation::all_to_all));
static_assert(!valid(Shape{Operation::all_reduce, 0, 0, false}));
static_assert(!valid(Shape{Operation::broadcast, 4, 4, false}));
static_assert(!valid(Shape{Operation::broadcast, 4, -1, false}));
static_assert(!valid(Shape{Operation::all_gather, 4, 1, false}), "only rooted operations have a root");
static_assert(valid(Shape{Operation::gather, 4, 3, true}) && !valid(Shape{Operation::gather, 4, 4, true}));
static_assert(!valid(Shape{Operation::exchange, 4, 0, false}), "it needs routes");
static_assert(combines(Operation::reduce) && combines(Operation::inclusive_scan) && !combines(Operation::gather));
static_assert(!valid(Shape{Operation::all_to_all, 4, 0, true}));
static_assert(!valid(Shape{Operation::all_to_all, 46341, 0, false}), "its blocks would not be countable");

}  // namespace

TEST_CASE("every block is contributed and wanted as often as the operation says") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      std::vector<int> contributed(static_cast<std::size_t>(blocks(shape)), 0);
      std::vector<int> wanted(contributed.size(), 0);
      for (int r = 0; r < p; ++r) {
        for (int s = 0; s < input_slots(shape, r); ++s) {
          const int block = input_block(shape, r, s);
          ++contributed.at(static_cast<std::size_t>(block));
          if (!combines(shape.operation)) CHECK(contributes(shape, block, r));
        }
        for (int s = 0; s < output_slots(shape, r); ++s) {
          ++wanted.at(static_cast<std::size_t>(output_block(shape, r, s)));
        }
      }
      const bool everywhere = shape.operation == Operation::all_reduce || shape.operation == Operation::all_gather ||
                              shape.operation == Operation::broadcast || shape.operation == Operation::inclusive_scan;
      const int homes = everywhere ? p : shape.operation == Operation::exclusive_scan ? p - 1 : 1;
      for (std::size_t b = 0; b < wanted.size(); ++b) {
        CHECK(contributed[b] == (combines(shape.operation) ? p : 1));
        CHECK(wanted[b] == homes);
      }
    }
  }
}

TEST_CASE("a scan's outputs are owed the contributions of the ranks before") {
  for (const Shape shape : {Shape{Operation::inclusive_scan, 5}, Shape{Operation::exclusive_scan, 5}}) {
    for (int r = 0; r < 5; ++r) {
      CHECK(contributors(shape, r) == r + (shape.operation == Operation::inclusive_scan ? 1 : 0));
    }
  }
  CHECK(contributors(Shape{Operation::reduce, 5, 2}, 2) == 5);
}

TEST_CASE("in place, an output lies where the same rank's contribution to the same block lies") {
  for (int p = 1; p <= 9; ++p) {
    for (const Shape& shape : test::all_shapes(p)) {
      CAPTURE(test::describe(shape));
      for (int r = 0; r < p; ++r) {
        int shared = 0;
        for (int i = 0; i < input_slots(shape, r); ++i) {
          const Piece input{r, Buffer::input, i, 1};
          bool alias = false;
          for (int o = 0; o < output_slots(shape, r); ++o) {
            const Piece output{r, Buffer::output, o, 1};
            if (place(shape, input) != place(shape, output)) continue;
            alias = true;
            ++shared;
            CHECK(input_block(shape, r, i) == output_block(shape, r, o));
          }
          CHECK(writable_input(shape, r, i) == alias);
        }
        const int inputs = input_slots(shape, r);
        const int outputs = output_slots(shape, r);
        CHECK(shared == (shape.in_place ? (inputs < outputs ? inputs : outputs) : 0));
        const Piece scratch{r, Buffer::scratch, 3, 2};
        CHECK(place(shape, scratch) == scratch);
      }
    }
  }
}
