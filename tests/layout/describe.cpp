// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/describe.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace {

using namespace meshwise;

using Grid = Mesh<dp, cp, tp, ep>;
template <class... Ps>
using On = Layout<Grid, Ps...>;

TEST_CASE("layouts in words") {
  CHECK(describe<On<>>() == "replicated");
  CHECK(describe<On<Shard<batch, dp>>>() == "batch over dp");
  CHECK(describe<On<Shard<batch, dp>, Shard<seq, Zigzag<cp>, tp>, Partial<ep>>>() ==
        "batch over dp; seq zigzag over cp, then tp; sum owed over ep");
  CHECK(describe<On<Shard<seq, dp, tp, Striped<cp>>>>() == "seq over dp, then tp, then striped over cp");
  CHECK(describe<On<Shard<seq, Counted<ep>, Chunked<tp>>>>() == "seq counted over ep, then chunked over tp");
  CHECK(describe<On<Partial<dp, Max>, Partial<ep, Max>>>() == "max owed over dp, ep");
  CHECK(describe<On<Partial<tp, Min>>>() == "min owed over tp");
  CHECK(describe<On<Shard<key<seq>, tp>>>() == "key<seq> over tp");
  CHECK(describe<Layout<Mesh<>>>() == "replicated");
}

TEST_CASE("layouts in the names of the caller") {
  const LayoutValue l = layout_value<On<Shard<seq, tp>, Partial<dp>>, Dims<batch, seq>>;
  CHECK(describe(l, {{"data", "context", "tensor", "expert"}, {"rows", "columns"}}) ==
        "columns over tensor; sum owed over data");
}

std::size_t lines(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += c == '\n' ? 1u : 0u;
  return n;
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("plans in words: both ends, a line for each step with its axes and cost, the sum") {
  using From = On<Partial<dp>, Shard<batch, tp>>;
  using To = On<Shard<batch, dp, tp>>;
  const std::string text = explain<From, To>();
  CHECK(lines(text) == 2 + static_cast<std::size_t>(plan<From, To>.count));
  CHECK(has(text, "from: batch over tp; sum owed over dp\n"));
  CHECK(has(text, "1. reduce_scatter over dp, receives 0.1875: batch over tp, then dp\n"));
  CHECK(has(text, "2. exchange over dp, tp, receives 0.04688: batch over dp, then tp\n"));
  CHECK(has(text, "receives 0.2344 of the tensor"));
  CHECK(has(explain<To, To>(), "nothing to do"));
  CHECK(has(explain<On<Partial<dp>>, On<Partial<dp, Max>>>(), "there is no way"));
}

TEST_CASE("plans in words, with bytes") {
  using From = Layout<Mesh<dp, tp>, Partial<dp>, Shard<batch, tp>>;
  using To = Layout<Mesh<dp, tp>, Shard<batch, tp, dp>>;
  const LayoutNames names{{"dp", "tp"}, {"batch"}};
  const std::array<int, 2> sizes{2, 3};
  const std::array<std::size_t, 1> extents{7};
  CHECK(has(explain(plan<From, To>, names, sizes, extents, 4), "all ranks together receive 28 = 28 bytes"));
  CHECK(has(explain(plan<To, To>, names, sizes, extents, 4), "all ranks together receive 0 bytes"));
  // Counts of a dim that change are no step of the plan, and bytes all the same: the last rank gets 2 indices.
  using Parts = Layout<Mesh<dp, tp>, Shard<batch, Counted<tp>>>;
  const std::array<std::size_t, 3> first{4, 3, 0}, second{4, 1, 2};
  const std::array<DimCounts, 1> counts{{{first, second}}};
  const std::string text = explain(plan<Parts, Parts>, names, sizes, extents, 4, counts);
  CHECK(has(text, "nothing to do\n"));
  CHECK(has(text, "then an exchange: parts that are counted get their new counts\n"));
  CHECK(has(text, "all ranks together receive 16 = 16 bytes"));
}

TEST_CASE("small shares keep their digits") {
  CHECK(detail::share_text(0) == "0");
  CHECK(detail::share_text(.75) == "0.75");
  CHECK(detail::share_text(1. / 65536) == "1.5e-05");
}

}  // namespace
