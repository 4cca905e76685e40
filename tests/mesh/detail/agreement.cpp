// SPDX-License-Identifier: Apache-2.0
#include "meshwise/mesh/detail/agreement.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../support/launch.hpp"

namespace {

using namespace meshwise;
using detail::Digest;
using detail::Statement;

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}
Digest digest_of(const std::vector<std::byte>& data) {
  Digest digest;
  digest.add(data.data(), data.size());
  return digest;
}

TEST_CASE("digests tell single bits, lengths and places apart") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t made = 0;
  const auto add = [&](const Digest& digest) {
    seen.insert({digest.lane[0], digest.lane[1]});
    ++made;
  };
  for (const std::size_t size : {0u, 1u, 7u, 8u, 9u, 24u, 65u}) {
    std::vector<std::byte> data(size);
    add(digest_of(data));
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      data[bit / 8] = std::byte{1} << static_cast<int>(bit % 8);
      add(digest_of(data));
      CHECK(digest_of(data) == digest_of(std::vector<std::byte>(data)));
      data[bit / 8] = std::byte{};
    }
  }
  CHECK(seen.size() == made);
  std::set<std::uint64_t> one, two;  // each lane by itself
  for (const auto& [a, b] : seen) {
    one.insert(a);
    two.insert(b);
  }
  CHECK(one.size() == made);
  CHECK(two.size() == made);
}

TEST_CASE("the majority is the reference, and the first rank that differs is named") {
  const auto check = [](const std::vector<int>& all, int reference, int other) {
    const detail::Dissent found = detail::dissent_among(all);
    CHECK(found.reference == reference);
    CHECK(found.other == other);
  };
  check({7}, 0, -1);
  check({7, 7, 7}, 0, -1);
  check({1, 2}, 0, 1);
  check({1, 2, 2}, 1, 0);
  check({2, 2, 1}, 0, 2);
  check({1, 2, 3, 3, 3}, 2, 0);
  check({1, 2, 3}, 0, 1);
}

TEST_CASE("statements that agree cost no traffic, others are errors on all ranks that name both") {
  for (const int ranks : {1, 2, 3, 4}) {
    launch(ranks, [&](Communicator& world) {
      world.set_name("tp");
      const int me = world.rank();
      for (const int odd : {0, ranks - 1}) {
        const Traffic before = world.traffic();
        Statement same;
        same.add("element", "f32");
        same.add("extents", std::string(1000, 'x'));
        same.compare(world, "convert");
        require(world.traffic() == before, "not counted");

        Statement other;
        other.add("element", "f32");
        other.add("extents", me == odd ? "batch 4" : "batch 5");
        other.add("rest", me == odd ? "a" : "b");
        std::string text;
        try {
          other.compare(world, "convert");
        } catch (const Error& error) {
          text = error.what();
          require(error.code() == Code::mismatch && error.report().ranks.size() == 2, "report");
        }
        if (ranks == 1) {
          require(text.empty(), "alone");
          continue;
        }
        // Of two, the first one is the reference.
        const bool first_is_reference = ranks == 2 ? true : odd != 0;
        const int reference = first_is_reference ? 0 : 1, dissenting = ranks == 2 ? 1 : odd;
        const auto said = [&](int rank) {
          return "\"batch " + std::string(rank == odd ? "4" : "5") + "\" on rank " + std::to_string(rank);
        };
        require(text == "convert (rank " + std::to_string(me) +
                            ", axis tp): expected the same extents on all ranks, found " + said(reference) + " and " +
                            said(dissenting) + "; let all ranks run the same program on the same sizes",
                text);
      }
    });
  }
}

TEST_CASE("lines that are missing, and what one rank refuses by itself") {
  launch(3, [](Communicator& world) {
    Statement more;
    more.add("mesh", "tp 3");
    if (world.rank() == 2) more.add("layout", "seq over tp");
    std::string text;
    try {
      more.compare(world, "assume");
    } catch (const Error& error) {
      text = error.what();
    }
    require(text.find("the same layout on all ranks, found \"nothing\" on rank 0 and \"seq over tp\" on rank 2") !=
                std::string::npos,
            text);

    Statement refused;
    refused.add("mesh", "tp 3");
    if (world.rank() == 1) refused.set_problem("3 elements, found 4");
    text.clear();
    try {
      refused.compare(world, "assume");
    } catch (const Error& error) {
      text = error.what();
    }
    require(world.rank() == 1 ? text.empty() : text.find("stopped by rank 1: 3 elements, found 4") != std::string::npos,
            text);
  });
}

}  // namespace
