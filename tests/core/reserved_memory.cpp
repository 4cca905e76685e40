// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/reserved_memory.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace meshwise;

TEST_CASE("reserved memory: much is counted, aligned, told apart from other memory, and given back") {
  ReservedMemory reserved;
  {
    Heap heap(reserved.source());
    constexpr std::size_t large = std::size_t{1} << 38;
    std::vector<Storage> all;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4033}, std::size_t{4096}, std::size_t{2} << 20, large}) {
      all.push_back(heap.allocate(bytes));
      const Storage& s = all.back();
      CHECK(s.bytes() == bytes);
      CHECK_FALSE(s.backed());
      CHECK(reinterpret_cast<std::uintptr_t>(s.data()) % 64 == 0);
      CHECK(reserved.holds(s.data()));
      CHECK(reserved.holds(s.data() + bytes));
    }
    CHECK(heap.total().current == 1 + 4033 + 4096 + (std::size_t{2} << 20) + large);
    int own = 0;
    CHECK_FALSE(reserved.holds(&own));
    CHECK_FALSE(reserved.holds(nullptr));
    const std::byte* const last = all.back().data();
    all.clear();
    CHECK(heap.total().current == 0);
    CHECK(heap.allocate(large).data() == last);  // kept for reuse, as any memory
    heap.trim();
    CHECK_FALSE(reserved.holds(last));
  }
  Heap ordinary;
  CHECK(ordinary.allocate(1).backed());
  CHECK(Storage().backed());
}

TEST_CASE("reserved memory: addresses that do not exist are an error, as memory that does not") {
  ReservedMemory reserved;
  Heap heap(reserved.source());
  CHECK_THROWS_AS(static_cast<void>(heap.allocate(std::size_t{1} << 60)), Error);
  CHECK(heap.total().current == 0);
}

}  // namespace
