// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/page_exchange.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "meshwise/fabric/shared_memory/segments.hpp"
#include "meshwise/fabric/shared_memory/space.hpp"
#include "meshwise/fabric/shared_memory/system_text.hpp"

using namespace meshwise::detail;

TEST_CASE("pages go to the arena and come back with their contents, whole or what is left of them") {
  const Segments::Descriptors all = Segments::create(1).release();
  Space space(0, 1, all.control, all.arenas, 5);
  PageExchange exchange(space.arena());
  const std::uint64_t page = exchange.page();
  const MappedPages mapped(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                           4 * page);
  auto* const data = static_cast<unsigned char*>(mapped.begin());
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  for (std::uint64_t k = 0; k < 4 * page; ++k) data[k] = static_cast<unsigned char>(k / 7);
  PageBlock pages{at, at + 4 * page, static_cast<std::byte*>(space.arena().allocate(4 * page, page))};
  REQUIRE(pages.block != nullptr);
  const auto now = [] { return system_text("/proc/self/maps"); };
  CHECK(exchange.exchanged(pages, now()).empty());
  REQUIRE(exchange.copy_in(pages) == 0);
  CHECK(std::memcmp(data, pages.block, 4 * page) == 0);
  CHECK(exchange.exchanged(pages, now()).empty());
  REQUIRE(exchange.exchange(pages) == 0);
  CHECK(exchange.exchanged_throughout(pages, at, at + 4 * page, now()));
  data[page] = 200;
  CHECK(pages.block[page] == std::byte{200});

  // One page in the middle becomes something else.
  REQUIRE(mmap(data + page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          data + page);
  data[page] = 100;
  CHECK(exchange.exchanged(pages, now()).size() == 2);
  CHECK_FALSE(exchange.exchanged_throughout(pages, at, at + 4 * page, now()));
  CHECK(exchange.exchanged_throughout(pages, at + 2 * page, at + 4 * page, now()));
  REQUIRE(exchange.give_own_pages(pages, now()) == 0);
  CHECK(exchange.exchanged(pages, now()).empty());
  CHECK(data[page] == 100);
  CHECK(data[4 * page - 1] == static_cast<unsigned char>((4 * page - 1) / 7));
  data[0] = 99;
  CHECK(pages.block[0] == std::byte{0});
  space.arena().release(pages.block, 4 * page);
}
