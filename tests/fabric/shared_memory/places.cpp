// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/places.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "../../support/processes.hpp"
#include "meshwise/fabric/shared_memory/control.hpp"

namespace {

using namespace meshwise::detail;

constexpr bool places_are_right() {
  for (int k = 0; k < address_place_count; ++k) {
    const AddressPlace place = address_places[k];
    if (place.base % arena_granule != 0 || place.base + place.bytes > 0x7fff'0000'0000) return false;
    for (const int ranks : {1, 2, 3, 7, 16, 255, Control::most_ranks}) {
      const std::uint64_t arena = place.arena(ranks, largest_arena);
      // 64 MiB for each rank is the least that a job can work with.
      if (arena % arena_granule != 0 || arena < std::uint64_t{64} << 20 || arena > largest_arena) return false;
      if (arena * static_cast<std::uint64_t>(ranks) > place.bytes) return false;
    }
    for (int other = 0; other < k; ++other) {
      const AddressPlace one = address_places[other];
      if (place.base < one.base + one.bytes && one.base < place.base + place.bytes) return false;
    }
  }
  return address_places[0].arena(16, largest_arena) == largest_arena;
}
static_assert(places_are_right());

}  // namespace

TEST_CASE("a place is free until something lies in it, also under sanitizers") {
  const std::uint64_t free = free_places(4, largest_arena);
  REQUIRE(free != 0);
  CHECK(free_places(4, largest_arena) == free);
  for (int k = 0; k < address_place_count; ++k) {
    if ((free >> k & 1) == 0) continue;
    auto* const somewhere = reinterpret_cast<void*>(address_places[k].base + arena_granule);
    void* const got = mmap(somewhere, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    REQUIRE(got == somewhere);
    CHECK(free_places(4, largest_arena) == (free & ~(std::uint64_t{1} << k)));
    CHECK((free_places(1, arena_granule) & free) == free);  // what is needed is free
    munmap(got, 4096);
  }
  CHECK(free_places(4, largest_arena) == free);
}

TEST_CASE("a limit of address space leaves the places that fit it") {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  test::Children child(1, [](int, const test::Line&) -> std::string {
    const rlimit limit{rlim_t{100} << 30, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    return std::to_string(free_places(1, largest_arena) >> 5);  // 64 and 16 GiB
  });
  const std::string said = child.hear(0);
  CHECK((said == "3" || said == "0"));  // 0: sanitizers have these, and most of the limit
#endif
}
