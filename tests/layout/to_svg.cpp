// SPDX-License-Identifier: Apache-2.0
#include "meshwise/layout/to_svg.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshwise/core/error.hpp"

namespace {

using namespace meshwise;

using Grid = Mesh<dp, cp, tp>;
template <class... Ps>
using On = Layout<Grid, Ps...>;
using All = Dims<batch, seq>;
constexpr std::array<int, 3> sizes{2, 2, 3};
constexpr std::array<std::size_t, 2> extents{4, 24};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// Tags are closed in order, and attributes quoted.
bool well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '<') continue;
    const std::size_t end = text.find('>', i);
    if (end == std::string::npos) return false;
    const std::string tag = text.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos || count(tag, "\"") % 2 != 0) return false;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    i = end;
  }
  return open.empty();
}

/// The blocks of a picture; the key to its colours has rectangles too.
std::size_t blocks(const std::string& svg) { return count(svg, "<g>"); }

TEST_CASE("one rectangle for each block of indices that the same ranks hold") {
  CHECK(blocks(to_svg<On<>, All>(sizes, extents)) == 1);
  CHECK(blocks(to_svg<On<Shard<batch, dp>>, All>(sizes, extents)) == 2);
  CHECK(blocks(to_svg<On<Shard<seq, dp, tp>>, All>(sizes, extents)) == 6);
  CHECK(blocks(to_svg<On<Shard<batch, dp>, Shard<seq, tp>>, All>(sizes, extents)) == 6);
  CHECK(blocks(to_svg<On<Shard<seq, Zigzag<cp>>>, All>(sizes, extents)) == 3);  // the inner two meet
  CHECK(blocks(to_svg<On<Shard<seq, Zigzag<tp>>>, All>(sizes, extents)) == 5);
  CHECK(blocks(to_svg<On<Shard<seq, Striped<tp>>>, All>(sizes, extents)) == 24);
  for (const std::string& svg :
       {to_svg<On<>, All>(sizes, extents), to_svg<On<Shard<batch, dp>, Partial<tp>>, All>(sizes, extents),
        to_svg<On<Shard<batch, dp>, Shard<seq, Zigzag<cp>, tp>>, All>(sizes, extents)}) {
    CHECK(well_formed(svg));
    CHECK(svg.find("<svg xmlns=") == 0);
    CHECK(count(svg, "href") == 0);
  }
}

TEST_CASE("blocks say where they are and who holds them") {
  const std::string svg = to_svg<On<Shard<batch, dp>, Shard<seq, Zigzag<cp>>>, All>(sizes, extents);
  CHECK(count(svg, "batch [0, 2) x seq [0, 6): dp 0, cp 0") == 1);
  CHECK(count(svg, "batch [2, 4) x seq [6, 18): dp 1, cp 1") == 1);
  CHECK(count(svg, "held by 3 ranks, along tp") == 1);
  CHECK(count(svg, "batch over dp; seq zigzag over cp") == 2);
  CHECK(count(to_svg<On<Shard<batch, dp>, Partial<cp>>, All>(sizes, extents),
              "held by 6 ranks, along cp, tp; what is owed") == 1);
}

TEST_CASE("counted, uneven and empty parts") {
  const std::array<std::size_t, 3> counts{0, 20, 4};
  const std::array<std::span<const std::size_t>, 2> by_dim{std::span<const std::size_t>(), counts};
  const std::string svg = to_svg<On<Shard<seq, Counted<tp>>>, All>(sizes, extents, by_dim);
  CHECK(blocks(svg) == 2);
  CHECK(count(svg, "<rect") == 4);
  CHECK(count(svg, "seq [0, 20): tp 1") == 1);
  CHECK(count(svg, "seq [20, 24): tp 2") == 1);
  const std::array<std::size_t, 2> none{0, 0}, two{1, 2};
  CHECK(blocks(to_svg<On<Shard<seq, tp>>, All>(sizes, none)) == 0);
  CHECK(well_formed(to_svg<On<Shard<seq, tp>>, All>(sizes, none)));
  CHECK(blocks(to_svg<On<Shard<seq, tp>>, All>(sizes, two)) == 2);
}

TEST_CASE("names are escaped") {
  const LayoutValue l = layout_value<On<Shard<seq, tp>>, All>;
  const LayoutNames names{{"a<b>", "&", "\"'"}, {"d<e>", "key<seq>"}};
  const std::string svg = to_svg(l, names, sizes, extents);
  CHECK(well_formed(svg));
  CHECK(count(svg, "key&lt;seq&gt;") > 0);
  CHECK(count(svg, "&quot;&apos;") > 0);
  CHECK(count(svg, "a&lt;b&gt;, &amp;") > 0);
}

template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

TEST_CASE("what cannot be drawn is refused with both numbers and a remedy") {
  using Three = On<Shard<batch, dp>, Shard<seq, cp>, Shard<hidden, tp>>;
  const std::array<std::size_t, 3> three{2, 2, 2};
  CHECK(refusal([&] { to_svg<Three, Dims<batch, seq, hidden>>(sizes, three); }) ==
        "to_svg: expected at most two sharded dims, found 3; draw the others replicated");
  CHECK(refusal([&] { to_svg<On<>, All>(sizes, three); }).find("expected 2 extents of dims, found 3") !=
        std::string::npos);
  CHECK(refusal([&] {
          to_svg<On<>, All>(std::span<const int>(), extents);
        }).find("expected 3 sizes of axes, found 0") != std::string::npos);
  CHECK(refusal([&] { to_svg<On<Shard<seq, Counted<tp>>>, All>(sizes, extents); }).find("3 counts") !=
        std::string::npos);
  const std::array<std::size_t, 2> huge{4, 1u << 20};
  CHECK(refusal([&] {
          to_svg<On<Shard<seq, Striped<tp>>>, All>(sizes, huge);
        }).find("at most 256 runs of indices in seq") != std::string::npos);
}

}  // namespace
