// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/reproducible/reproducible.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "../../support/launch.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/core/random.hpp"

namespace {

using namespace meshwise;

std::vector<float> numbers(int rank, std::size_t n) {
  std::vector<float> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<float>(normal(static_cast<std::uint64_t>(rank), i));
  return result;
}

/// The sum in rank order.
std::vector<float> in_order(int ranks, std::size_t n) {
  std::vector<float> sum = numbers(0, n);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<float> other = numbers(r, n);
    for (std::size_t i = 0; i < n; ++i) sum[i] += other[i];
  }
  return sum;
}

LaunchOptions over_messages(std::optional<Algorithm> forced = {}) {
  LaunchOptions options;
  options.messages = true;
  options.settings.emplace();
  if (forced) options.settings->of(Operation::all_reduce).algorithm = *forced;
  return options;
}

TEST_CASE("reproducible: sums in rank order of any size, blocking, started and of groups, whatever is chosen") {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{50'001}}) {
      launch(ranks, over_messages(), [&](Communicator& world) {
        Communicator line = reproducible(std::move(world));
        CHECK(world.empty());
        Communicator same = line.split(0);
        for (Communicator* one : {&line, &same}) {
          std::vector<float> x = numbers(one->rank(), n), y = x;
          all_reduce(*one, x);
          CHECK(x == in_order(ranks, n));
          auto pending = start_all_reduce(*one, y);
          pending.wait();
          CHECK(y == x);
        }
      });
    }
  }
}

TEST_CASE("reproducible: without it a ring sums in other orders; with it a ring that is wanted is refused") {
  bool differs = false, refused = false;
  launch(3, over_messages(Algorithm::ring), [&](Communicator& world) {
    std::vector<float> x = numbers(world.rank(), 1000);
    all_reduce(world, x);
    if (world.rank() == 0) differs = x != in_order(3, 1000);
    Communicator line = reproducible(std::move(world));
    x = numbers(line.rank(), 1000);
    all_reduce(line, x);  // forced by settings, which a call that it does not fit overrides
    CHECK(x == in_order(3, 1000));
    if (line.rank() == 0) CHECK(line.explain(Operation::all_reduce, 4000).find("reproducible") != std::string::npos);
    try {
      CollectiveOptions options;
      options.algorithm = Algorithm::ring;
      all_reduce(line, x, options);
    } catch (const Error& error) {
      if (line.rank() == 0) refused = std::string(error.what()).find("reproducible") != std::string::npos;
    }
  });
  CHECK(differs);
  CHECK(refused);
}

}  // namespace
