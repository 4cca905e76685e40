// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/notes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/schedule/ring.hpp"
#include "meshwise/schedule/torus.hpp"

using namespace meshwise;
using detail::CallNotes;

namespace {

Call cut(const std::vector<std::size_t>& begins) {
  Call call;
  call.shape.ranks = static_cast<int>(begins.size()) - 1;
  call.begins = begins.data();
  return call;
}

std::string difference(const CallNotes& a, const CallNotes& b, std::uint64_t sequence) {
  return CallNotes::difference(a, b, sequence, 4, 7);
}

}  // namespace

TEST_CASE("notes tell the first count that differs, and of which call") {
  CallNotes::Pages pages[2];
  CallNotes a(&pages[0]), b(&pages[1]);
  const std::vector<std::size_t> one{0, 2, 2, 9}, two{0, 2, 3, 9}, empty{0, 0, 0, 0};
  CHECK(difference(a, b, 1).empty());
  a.write(1, cut(one));
  CHECK(difference(a, b, 1).empty());
  b.write(1, cut(two));
  CHECK(difference(a, b, 1) == "the counts: rank 4 says that the part of rank 1 has 0 elements, rank 7 says 1");
  a.write(2, cut(one));
  b.write(2, cut(one));
  CHECK(difference(a, b, 2).empty());
  CHECK(!difference(a, b, 1).empty());
  // A later call takes the place of one long ago.
  b.write(17, cut(empty));
  CHECK(difference(a, b, 1).empty());

  Call before = cut(one), after = cut(one);
  before.begins_after = two.data();
  after.begins_after = empty.data();
  a.write(3, before);
  b.write(3, after);
  CHECK(difference(a, b, 3) ==
        "the counts: rank 4 says that the part of rank 0 has 2 elements afterwards, rank 7 says 0");
}

TEST_CASE("notes tell the parameters of algorithms, as far as they go") {
  CallNotes::Pages pages[2];
  CallNotes a(&pages[0]), b(&pages[1]);
  const Torus plane{{4, 2}}, other{{2, 4}};
  Call call;
  call.algorithm = Algorithm::custom;
  call.generator = AnyGenerator::of<Ring>();
  CHECK(!detail::noted(call));
  call.generator = AnyGenerator(plane);
  CHECK(detail::noted(call));
  a.write(5, call);
  b.write(5, call);
  CHECK(difference(a, b, 5).empty());
  call.generator = AnyGenerator(other);
  b.write(5, call);
  CHECK(difference(a, b, 5) == "the parameters of the algorithm: rank 4 has torus{4, 2}, rank 7 has torus{2, 4}");
  const Torus deep{std::vector<int>(100, 1)};
  call.generator = AnyGenerator(deep);
  b.write(6, call);
  a.write(6, call);
  CHECK(difference(a, b, 6).empty());
}
