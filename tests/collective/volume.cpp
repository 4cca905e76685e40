// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/volume.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "meshwise/collective/detail/regions.hpp"
#include "meshwise/schedule/contract.hpp"

using namespace meshwise;

namespace {

/// A call on equal parts of `count` elements of 8 bytes. count must outlive it.
Call parts(Operation operation, const std::size_t& count, int ranks) {
  Call call;
  call.shape.operation = operation;
  call.shape.ranks = ranks;
  call.element_size = 8;
  call.count = count;
  call.regions = Regions{&detail::span_region, &count, 0};
  return call;
}

std::uint64_t total(const Call& call) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < call.shape.ranks; ++rank) sum += volume(call, rank);
  return sum;
}

constexpr std::size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};

}  // namespace

TEST_CASE("summed over the ranks the volume is exact, however uneven the blocks") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const auto p = static_cast<std::size_t>(ranks);
    for (const std::size_t count : counts) {
      const auto sum = [&](Operation operation, const std::size_t& elements) {
        Call call = parts(operation, elements, ranks);
        if (rooted(operation)) call.shape.root = ranks - 1;
        return total(call);
      };
      const std::size_t each = p == 1 ? 0 : (p - 1) * count * 8;
      CHECK(sum(Operation::all_reduce, count) == 2 * each);
      CHECK(sum(Operation::reduce_scatter, count) == each);
      CHECK(sum(Operation::all_gather, count) == each);
      CHECK(sum(Operation::broadcast, count) == each);
      CHECK(sum(Operation::reduce, count) == each);
      CHECK(sum(Operation::inclusive_scan, count) == each);
      CHECK(sum(Operation::exclusive_scan, count) == each);
      const std::size_t square = count * p;
      CHECK(sum(Operation::all_to_all, square) == each * p);
      const std::size_t away = p == 1 ? 0 : count - detail::rank_part(count, ranks, ranks - 1).size;
      CHECK(sum(Operation::gather, count) == away * 8);
      CHECK(sum(Operation::scatter, count) == away * 8);
    }
  }
}

TEST_CASE("only the root of a reduce or gather receives, and all others of a broadcast or scatter") {
  const std::size_t count = 10;
  for (const Operation operation : {Operation::reduce, Operation::gather, Operation::broadcast, Operation::scatter}) {
    Call call = parts(operation, count, 4);
    call.shape.root = 2;
    const bool collects = operation == Operation::reduce || operation == Operation::gather;
    for (int rank = 0; rank < 4; ++rank) CHECK((volume(call, rank) > 0) == ((rank == 2) == collects));
  }
  CHECK(volume(parts(Operation::inclusive_scan, count, 4), 0) == 0);
  CHECK(volume(parts(Operation::exclusive_scan, count, 4), 3) == 80);
}

TEST_CASE("blocks are parts that begin at floor(k N / p)") {
  const std::size_t count = 10;
  for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                    Operation::broadcast, Operation::reduce, Operation::gather, Operation::scatter,
                                    Operation::inclusive_scan, Operation::exclusive_scan}) {
    const Call call = parts(operation, count, 4);
    CHECK(block_size(call, 0) == 2);
    CHECK(block_size(call, 1) == 3);
    CHECK(block_size(call, 2) == 2);
    CHECK(block_size(call, 3) == 3);
  }
  CHECK(block_size(parts(Operation::all_to_all, count, 5), 7) == 2);
  CHECK(detail::rank_part(~std::size_t{0}, 7, 6).end() == ~std::size_t{0});
}

TEST_CASE("an exchange is worth what a rank wants and does not hold") {
  // Block b has b + 1 elements. Rank 0 holds 0 and 1, rank 1 holds 1 and 2, rank 2 holds none.
  const Routes routes(3, {{0, 1}, {1, 2}, {}}, {{1, 2}, {}, {0, 1, 2, 2}});
  Call call;
  call.shape.operation = Operation::exchange;
  call.shape.ranks = 3;
  call.shape.routes = &routes;
  call.element_size = 4;
  call.count = 6;
  call.regions.locate = [](const void*, const Shape& shape, Buffer buffer, int rank, int slot) {
    const auto& slots = buffer == Buffer::input ? shape.routes->held : shape.routes->wanted;
    const auto block = static_cast<std::size_t>(slots[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot)]);
    return Region{0, block + 1, block + 1, 1};
  };
  CHECK(volume(call, 0) == 3 * 4);
  CHECK(volume(call, 1) == 0);
  CHECK(volume(call, 2) == (1 + 2 + 3 + 3) * 4);
  CHECK(block_size(call, 2) == 3);
}

TEST_CASE("regions that one rank knows are enough for its volume") {
  const std::vector<std::size_t> begins{0, 1, 1, 4, /*output*/ 0, 5, 7, 7};  // of rank 1
  Call call;
  call.shape.operation = Operation::all_to_all;
  call.shape.ranks = 3;
  call.element_size = 2;
  call.count = 1;
  call.regions = Regions{&detail::own_region, begins.data(), begins.size() * sizeof(std::size_t)};
  CHECK(volume(call, 1) == 2 * 5);
  CHECK(block_size(call, 1 * 3 + 2) == 3);
}
