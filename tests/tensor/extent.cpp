// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/extent.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "meshwise/layout/dim.hpp"

namespace {

using namespace meshwise;

using Two = Extents<Dims<batch, seq>>;
template <class... Ns>
concept are_two_extents = requires(Ns... ns) {
  Two{ns...};
};
static_assert(are_two_extents<std::size_t, Extent> && are_two_extents<unsigned, std::size_t> && are_two_extents<Two>);
static_assert(!are_two_extents<> && !are_two_extents<int> && !are_two_extents<int, int, int>);
static_assert(std::is_same_v<Two, Extents<Dims<vocab, hidden>>> && std::is_default_constructible_v<Extents<Dims<>>>);

TEST_CASE("a number where counts do not matter") {
  const Extents<Dims<batch, seq>> extents{3, 4};
  CHECK(extents[0] * extents[1] == 12);
  CHECK(extents[0] + 1 == 4);
  CHECK(extents[0] == 3);
  CHECK(extents[0] != extents[1]);
  CHECK(std::to_string(extents[1]) == "4");
  CHECK(extents == Extents<Dims<batch, seq>>{3, 4});
  std::size_t product = 1;
  for (const std::size_t e : extents) product *= e;
  CHECK(product == 12);
  CHECK(Extent().size() == 0);
  CHECK(extents[0].counts().empty());
}

TEST_CASE("counts add up, are shared by copies, and are compared") {
  const Extent a = Extent::of_parts({3, 0, 4}), b = Extent::of_parts({3, 0, 4}), c = Extent::of_parts({4, 0, 3});
  CHECK(a.size() == 7);
  CHECK(a == b);
  CHECK(a != c);
  CHECK(a != Extent(7));
  CHECK(a == 7);
  const Extent copy = a;
  CHECK(copy.counts().data() == a.counts().data());
  Extent plain = a;
  plain.drop_counts();
  CHECK(plain == Extent(7));
  CHECK(Extent::of_parts({}).counted());
  std::string text;
  try {
    (void)Extent::of_parts({5, static_cast<std::size_t>(-3)});
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("counts whose sum fits 64 bits") != std::string::npos);
}

}  // namespace
