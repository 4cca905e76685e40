// SPDX-License-Identifier: Apache-2.0
// What a block has saved after its forward, measured, against the formulas of Korthikanti et al. (arXiv 2205.05198):
// bf16, multi-head attention, an MLP of 4h with GELU, dropout everywhere.
#include <doctest/doctest.h>

#include <cstdio>
#include <optional>

#include "../support/sanitized.hpp"
#include "block_support.hpp"

namespace {

using namespace test;

template <Recompute R, Gathered G, Masks M, bool sp>
struct Form : BlockForm {
  static constexpr bool sequence_parallel = sp;
  static constexpr Recompute recompute = R;
  static constexpr Gathered gathered = G;
  static constexpr Masks masks = M;
};

template <class F>
using Block = TransformerBlock<bf16, Grid, F>;

constexpr std::size_t width = building::sanitized ? 128 : 1024;
const BlockSizes sizes{1, 64, width, 16, width / 16, 4 * width, 16};

struct Rows {
  double b = static_cast<double>(sizes.b), s = static_cast<double>(sizes.s), h = static_cast<double>(sizes.h);
  double sbh = s * b * h, scores = static_cast<double>(sizes.heads) * s / h;  // as/h
};

/// Bytes per sbh that a rank has saved, but for the statistics of the norms.
template <class F>
double per_sbh(const Grid& mesh) {
  using B = Block<F>;
  Heap& heap = mesh.memory();
  typename B::Parameters w = [&] {
    const CategoryScope scope(heap, Category::parameters);
    const auto zeros = [&]<class T>(detail::type<T>) { return T(mesh, extents_of(sizes, typename T::dims{})); };
    return made<typename B::Parameters>(zeros);
  }();
  const std::size_t before = heap.usage(Category::activations).current;
  std::optional<typename B::Saved> saved;
  {
    const auto x = block_input<B>(mesh, sizes);
    saved.emplace(B::forward(w, x, {0.1, 1, 2, {0.1, 3}}).second);
  }
  const std::size_t bytes = heap.usage(Category::activations).current - before;
  // Mean and scale of the rows of two norms, in single precision.
  const Rows r;
  const double rows = r.s * r.b / (F::sequence_parallel ? mesh.size<tp>() : 1);
  const double statistics = F::recompute == Recompute::full ? 0 : 16 * rows;
  require(statistics < 0.01 * static_cast<double>(bytes), "they are less than a hundredth of it");
  return (static_cast<double>(bytes) - statistics) / r.sbh;
}

void check(double measured, double formula, const char* what) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: %.6f sbh saved, %.6f by the formula", what, measured, formula);
  require(measured == formula, text);
}

}  // namespace

TEST_CASE("saved activations are those of the formulas, but for two numbers per normalised row") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const auto check_all = [](const Grid& mesh) {
      using enum Recompute;
      using G = Gathered;
      using M = Masks;
      const double t = mesh.size<tp>();
      const double as_h = Rows{}.scores;
      check(per_sbh<Form<none, G::kept, M::kept, false>>(mesh), 10 + 24 / t + 5 * as_h / t, "tensor parallel");
      check(per_sbh<Form<none, G::again, M::kept, true>>(mesh), (34 + 5 * as_h) / t, "sequence parallel");
      check(per_sbh<Form<none, G::kept, M::kept, true>>(mesh), t == 1 ? 34 + 5 * as_h : 4 + (30 + 5 * as_h) / t,
            "sequence parallel, gathered inputs kept");
      check(per_sbh<Form<selective, G::kept, M::kept, false>>(mesh), 10 + 24 / t, "tensor parallel, selective");
      check(per_sbh<Form<selective, G::again, M::kept, true>>(mesh), 34 / t, "sequence parallel, selective");
      check(per_sbh<Form<full, G::kept, M::kept, false>>(mesh), 2, "full");
      check(per_sbh<Form<full, G::kept, M::kept, true>>(mesh), 2 / t, "sequence parallel, full");
      // Masks that are drawn again from their seeds save a byte each, and the dropped probabilities.
      check(per_sbh<Form<none, G::kept, M::replayed, false>>(mesh), 8 + 24 / t + 2 * as_h / t, "replayed");
      check(per_sbh<Form<none, G::again, M::replayed, true>>(mesh), (32 + 2 * as_h) / t, "replayed, sequence parallel");
      check(per_sbh<Form<none, G::kept, M::replayed, true>>(mesh), t == 1 ? 32 + 2 * as_h : 4 + (28 + 2 * as_h) / t,
            "replayed, gathered inputs kept");
      check(per_sbh<Form<selective, G::again, M::replayed, true>>(mesh), 32 / t, "replayed, selective");
    };
    CHECK_NOTHROW(on_grid({1, ranks}, check_all));
  }
}
