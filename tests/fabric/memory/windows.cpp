// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/windows.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <iterator>
#include <set>
#include <vector>

using namespace meshwise;

namespace {
struct alignas(128) Line {
  char bytes[128];
};
}  // namespace

TEST_CASE("windows of all ranks and turns are apart, aligned and empty") {
  constexpr int ranks = 5;
  for (const std::size_t capacity : {1U, 40U, 104U, 105U, 2048U}) {
    std::vector<Line> memory(detail::Windows::bytes(ranks, capacity) / sizeof(Line));
    detail::Windows windows(memory.data(), ranks, capacity, true);
    CHECK(windows.capacity() == capacity);
    std::set<std::uintptr_t> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(windows.finished(rank) == 0);
      for (std::uint64_t turn = 0; turn < detail::Windows::depth; ++turn) {
        CHECK(windows.at(rank, turn).sequence == 0);
        const auto head = reinterpret_cast<std::uintptr_t>(&windows.at(rank, turn));
        const auto data = reinterpret_cast<std::uintptr_t>(windows.at(rank, turn).data());
        CHECK(head % 128 == 0);
        CHECK(data - head == 24);
        // No other window begins before this one ends.
        const auto next = seen.lower_bound(head);
        CHECK((next == seen.end() || *next >= data + capacity));
        if (next != seen.begin()) CHECK(*std::prev(next) + 24 + capacity <= head);
        CHECK(head >= reinterpret_cast<std::uintptr_t>(memory.data()));
        CHECK(data + capacity <= reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()));
        seen.insert(head);
        CHECK(&windows.at(rank, turn) == &windows.at(rank, turn + detail::Windows::depth));
      }
    }
  }
}

TEST_CASE("groups for which windows are of no use have none") {
  CHECK(detail::Windows::useful(2, false) == 2048);
  CHECK(detail::Windows::useful(2, true) > detail::Windows::useful(2, false));
  CHECK(detail::Windows::useful(detail::Windows::most_ranks + 1, true) == 0);
  CHECK(detail::Windows(nullptr, 4096, 0, true).capacity() == 0);
  CHECK(detail::Windows::bytes(4096, 0) == 0);
}
