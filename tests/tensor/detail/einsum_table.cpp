// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/einsum_table.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace meshwise::detail;
using Table = EinsumTable;

constexpr unsigned in_all = Table::in_a | Table::in_b | Table::in_c, in_rows = Table::in_a | Table::in_c,
                   in_sums = Table::in_a | Table::in_b;

/// batch (0) of 4, rows (1) of 30, a sum (2) of 64, columns (3) of 50; C has a gap between its batches if `apart`.
Table table_of(std::ptrdiff_t apart) {
  return {Labels{}.add(0, 4, 30 * 64).add(1, 30, 64).add(2, 64, 1),
          Labels{}.add(0, 4, 64 * 50).add(2, 64, 50).add(3, 50, 1),
          Labels{}.add(0, 4, 30 * 50 + apart).add(1, 30, 50).add(3, 50, 1)};
}

TEST_CASE("volumes are products of extents, by where labels occur") {
  const Table table = table_of(0);
  CHECK(table.volume(Table::in_a, Table::in_a) == 4 * 30 * 64);
  CHECK(table.volume(Table::in_c, Table::in_c) == 4 * 30 * 50);
  CHECK(table.volume(Table::in_c, 0) == 64);
  CHECK(table.volume(in_all, in_all) == 4);
  const Labels none;
  CHECK(Table(none, none, none).volume(Table::in_c, Table::in_c) == 1);
}

TEST_CASE("labels of one kind merge where all operands step through them as through one") {
  const auto rows_of_two = [](std::ptrdiff_t gap) {
    return Table(Labels{}.add(0, 4, 30 * 64).add(1, 30, 64).add(2, 64, 1), Labels{}.add(2, 64, 1),
                 Labels{}.add(0, 4, 30 + gap).add(1, 30, 1));
  };
  const Table::Group merged = rows_of_two(0).group(in_rows);
  REQUIRE(merged.count == 1);
  CHECK(merged.axes[0].extent == 120);
  CHECK(merged.axes[0].a == 64);
  CHECK(merged.axes[0].b == 0);
  CHECK(merged.axes[0].c == 1);
  CHECK(rows_of_two(1).group(in_rows).count == 2);
  CHECK(rows_of_two(0).group(in_sums).count == 1);
  CHECK(rows_of_two(0).group(in_all).count == 0);
  // An extent of one is no step at all.
  CHECK(Table(Labels{}.add(0, 1, 7), Labels{}, Labels{}.add(0, 1, 3)).group(in_rows).count == 0);
}

TEST_CASE("packed operands have the strides of dense copies, in the order that lets labels merge") {
  // A is stored with its sum outermost and its rows apart; C has the rows of two labels densely.
  const Labels a = Labels{}.add(2, 64, 1000).add(1, 30, 3).add(0, 4, 200), b = Labels{}.add(2, 64, 1);
  const Labels c = Labels{}.add(0, 4, 30).add(1, 30, 1);
  const Table table(a, b, c);
  CHECK(table.group(in_rows).count == 2);
  EinsumPlan plan;
  const Table packed = table.packed(pack_a, plan);
  CHECK(plan.packed == pack_a);
  CHECK(packed.group(in_rows).count == 1);
  std::ptrdiff_t size = 1;
  for (int i = plan.dense_a.count; i-- > 0;) {
    CHECK(plan.dense_a.labels[i].stride == size);
    size *= plan.dense_a.labels[i].extent;
  }
  CHECK(size == 4 * 30 * 64);
  CHECK(plan.dense_b.count == 0);
  CHECK(packed.volume(Table::in_a, Table::in_a) == size);
  CHECK(table.group(in_rows).count == 2);
}

TEST_CASE("labels that do not fit together are named") {
  const auto message = [](const Labels& a, const Labels& b, const Labels& c) {
    try {
      static_cast<void>(Table(a, b, c));
    } catch (const meshwise::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Labels none, one = Labels{}.add(1, 2, 1);
  CHECK(message(one, none, none).find("dim 1 in left only") != std::string::npos);
  CHECK(message(none, one, none).find("dim 1 in right only") != std::string::npos);
  CHECK(message(none, none, one).find("dim 1 in result only") != std::string::npos);
  CHECK(message(one, Labels{}.add(1, 3, 1), none).find("found 3 in the right operand") != std::string::npos);
  CHECK(message(one, none, Labels{}.add(1, 2, 0)).find("stride 0") != std::string::npos);
  CHECK(message(one, one, one) == "");
}

}  // namespace
