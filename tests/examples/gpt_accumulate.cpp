// SPDX-License-Identifier: Apache-2.0
// A batch in micro-batches: the gradient of the mean over all its tokens, whatever the parts.
#include <doctest/doctest.h>

#include <array>

#include "gpt_support.hpp"

using namespace test;

TEST_CASE("gpt: micro-batches of any sizes are one batch within rounding, in every stage") {
  gpt::Training t;
  t.precision = gpt::Precision::f64;
  t.adamw.learning_rate = 3e-3;
  t.steps = 4;
  constexpr std::size_t sequences = 7;  // 3 + 4, or 1 + 2 + 2 + 2: a mean of means would be another number
  gpt::Sizes sizes = odd_sizes;
  sizes.layers = 1;
  const Run whole = run({}, sizes, t, sequences);
  std::size_t turn = 0;
  for (const MeshShape& shape : {MeshShape{1, 1, 1}, MeshShape{2, 1, 1}, MeshShape{2, 1, 2}, MeshShape{1, 2, 1}}) {
    for (int zero = 0; zero < 4; ++zero) {
      const std::size_t parts = std::array{2u, 4u, 7u}[turn++ % 3];  // with 7 most ranks have no sequence at all
      t.zero = zero;
      CAPTURE(shape_name(shape));
      CAPTURE(zero);
      CAPTURE(parts);
      const Distance d = distance(run(shape, sizes, t, sequences, parts), whole);
      CHECK(d.loss < 1e-11);
      CHECK(d.norm < 1e-10);
      CHECK(d.parameters < 1e-8);
    }
  }
}

TEST_CASE("gpt: micro-batches drop different values") {
  gpt::Training t;
  t.dropout = 0.5;
  CHECK(gpt::dropout_seed(t, 1, 0) != gpt::dropout_seed(t, 1, 1));
  CHECK(gpt::dropout_seed(t, 1, 0) != gpt::dropout_seed(t, 2, 0));
}
