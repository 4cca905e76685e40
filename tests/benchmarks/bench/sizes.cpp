// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/sizes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace {

using harness::parse_bytes;
using harness::sweep;

constexpr std::size_t bytes(std::string_view text) {
  std::size_t value = 77;
  return parse_bytes(text, value) ? value : 77;
}

static_assert(bytes("0") == 0 && bytes("8") == 8 && bytes("32k") == 32768 && bytes("128M") == std::size_t{128} << 20);
static_assert(bytes("1G") == std::size_t{1} << 30 && bytes("1GiB") == bytes("1G") && bytes("2KB") == 2048);
static_assert(bytes("5B") == 5 && bytes("18446744073709551615") == ~std::size_t{0});

TEST_CASE("what is no size is refused and changes nothing") {
  for (const char* text :
       {"", "k", "-1", "1.5M", "1 M", "1MM", "1X", "0x10", "18446744073709551616", "16777216T", "9iB"}) {
    CAPTURE(text);
    CHECK(bytes(text) == 77);
  }
}

TEST_CASE("sizes read as people write them") {
  CHECK(harness::bytes_text(0) == "0");
  CHECK(harness::bytes_text(1023) == "1023");
  CHECK(harness::bytes_text(1024) == "1K");
  CHECK(harness::bytes_text(1536) == "1536");
  CHECK(harness::bytes_text(std::size_t{3} << 20) == "3M");
  for (const std::size_t size : {8UL, 1024UL, 3UL << 20, 5UL << 30}) CHECK(bytes(harness::bytes_text(size)) == size);
}

TEST_CASE("a sweep goes by factors or by steps, and ends") {
  CHECK(sweep(8, 128, 2, 0) == std::vector<std::size_t>{8, 16, 32, 64, 128});
  CHECK(sweep(8, 100, 4, 0) == std::vector<std::size_t>{8, 32});
  CHECK(sweep(8, 8, 2, 0) == std::vector<std::size_t>{8});
  CHECK(sweep(10, 40, 2, 10) == std::vector<std::size_t>{10, 20, 30, 40});
  CHECK(sweep(0, 4, 2, 0) == std::vector<std::size_t>{0, 2, 4});
  CHECK(sweep(4, 7, 1.1, 0) == std::vector<std::size_t>{4, 5, 6, 7});  // never the same twice
  CHECK(sweep(9, 8, 2, 0).empty());
}

}  // namespace
