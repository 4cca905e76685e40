// SPDX-License-Identifier: Apache-2.0
// Refusals are tested in tests/static/collective_refusals.cpp and tests/compile_fail/collective_*.cpp; here, that they
// are in the way of nothing that is right, whatever kinds of arguments it has.
#include "meshwise/collective/refused.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "meshwise/collective/all_gather_v.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/collective/scan.hpp"
#include "meshwise/schedule/ring.hpp"
#include "support.hpp"

using namespace test;

TEST_CASE("every kind of buffer and option finds its function") {
  launch(2, [](Communicator& c) {
    int plain[2] = {1, 2};
    std::array<int, 2> fixed{1, 2};
    std::vector<int> vector{1, 2};
    const std::vector<int> constant{1, 2};
    const std::span<int> span(vector);
    const CollectiveOptions options;
    all_reduce(c, plain);
    all_reduce<Max>(c, fixed, {});
    all_reduce<Ring, Max>(c, constant, vector, options);
    all_reduce<Min, Ring>(c, std::as_const(plain), span);
    all_reduce(c, std::span<const int>(fixed), std::span(vector).first(2), CollectiveOptions{Algorithm::ring});
    broadcast(c, span, 1, {Algorithm::direct, -1});
    broadcast(c, std::span(plain).first(1));
    inclusive_scan<PreMultipliedSum>(c, fixed);
    require(start_all_reduce(c, std::vector<int>{1, 2}).wait() == std::vector<int>{2, 4}, "moved in");
    require(start_all_reduce<Ring>(c, constant, std::vector<int>(2)).wait().size() == 2, "moved output");
    require(prepare_all_reduce(c, std::vector<int>{1, 2}, vector).run()[0] == 2, "prepared");

    // Counts of the element's own type are no output.
    const std::vector<std::size_t> counts{1, 1};
    std::vector<std::size_t> sizes{3, 4};
    all_gather_v(c, sizes, counts);
    all_gather_v<Ring>(c, std::span(counts).first(1), sizes, counts, options);
    reduce_scatter_v<Max>(c, sizes, std::vector<std::size_t>{1, 1});
    gather(c, std::span(counts).first(1), c.rank() == 0 ? std::span(sizes) : std::span<std::size_t>(), 0);
  });
}
