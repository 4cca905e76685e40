// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/einsum_plan.hpp"

#include <doctest/doctest.h>

namespace {

using namespace meshwise::detail;

TEST_CASE("labels stand in the order in which they are added, up to a limit") {
  Labels labels;
  for (int i = 0; i < max_labels; ++i) CHECK(&labels.add(10 + i, i, 2 * i) == &labels);
  int seen = 0;
  for (const Labels::Label& label : labels) {
    CHECK(label.name == 10 + seen);
    CHECK(label.extent == seen);
    CHECK(label.stride == 2 * seen);
    ++seen;
  }
  CHECK(seen == max_labels);
  CHECK_THROWS_AS(labels.add(99, 1, 1), meshwise::Error);
  CHECK(labels.count == max_labels);
}

TEST_CASE("a few values are sorted, equal ones stay in order") {
  struct Item {
    int key, was;
  };
  for (int count = 0; count <= 7; ++count) {
    for (unsigned seed = 1; seed < 200; ++seed) {
      Item items[7];
      for (int i = 0; i < count; ++i) items[i] = {static_cast<int>(seed * 2654435761u >> (4 * i)) & 3, i};
      sort_few(items, count, [](const Item& a, const Item& b) { return a.key < b.key; });
      bool good = true;
      for (int i = 1; i < count; ++i) {
        const Item &a = items[i - 1], &b = items[i];
        good = good && (a.key < b.key || (a.key == b.key && a.was < b.was));
      }
      CHECK(good);
    }
  }
}

}  // namespace
