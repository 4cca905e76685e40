// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/address_map.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "meshwise/fabric/shared_memory/descriptor.hpp"
#include "meshwise/fabric/shared_memory/memory_file.hpp"
#include "meshwise/fabric/shared_memory/system_text.hpp"

namespace {

using namespace meshwise::detail;

constexpr char sample[] =
    "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/a program with blanks\n"
    "00651000-00652000 rw-p 00051000 08:02 173521      /usr/bin/a program with blanks\n"
    "7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n"
    "nonsense\n"
    "\n"
    "7f0000020000-7f0000030000 rw-s 00010000 00:01 4026531840                /memfd:x (deleted)\n"
    "7fff0000-\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";

}  // namespace

TEST_CASE("the description of the address space is read, and cut to what is asked for") {
  const auto all = address_ranges(sample, 0, ~std::uint64_t{0});
  REQUIRE(all.size() == 5);
  CHECK(all[0].begin == 0x400000);
  CHECK(all[0].end == 0x452000);
  CHECK(all[0].access == "r-xp");
  CHECK(all[0].name == "/usr/bin/a program with blanks");
  CHECK(all[0].file == 173521);
  CHECK(all[0].device == makedev(8, 2));
  CHECK(all[1].offset == 0x51000);
  CHECK(all[2].name.empty());
  CHECK(all[3].file == 4026531840);
  CHECK(all[4].name == "[vsyscall]");

  const auto some = address_ranges(sample, 0x7f000000f000, 0x7f0000021000);
  REQUIRE(some.size() == 2);
  CHECK(some[0].begin == 0x7f000000f000);
  CHECK(some[0].end == 0x7f0000010000);
  CHECK(some[1].begin == 0x7f0000020000);
  CHECK(some[1].end == 0x7f0000021000);
  CHECK(some[1].offset == 0x10000);
  CHECK(address_ranges(sample, 0x7f0000028000, 0x7f0000029000)[0].offset == 0x18000);
  CHECK(address_ranges(sample, 0x452000, 0x651000).empty());
  CHECK(address_ranges("", 0, ~std::uint64_t{0}).empty());
}

TEST_CASE("what this process has mapped is found there") {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const Descriptor file = memory_file("test");
  REQUIRE(reserve_pages(file.get(), 0, 4 * page) == 0);
  const MappedPages pages(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), static_cast<off_t>(page)), 2 * page);
  REQUIRE(pages.begin() != MAP_FAILED);
  const auto at = reinterpret_cast<std::uintptr_t>(pages.begin());
  const auto ranges = address_ranges(system_text("/proc/self/maps"), at + page, at + 2 * page);
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].access == "rw-s");
  struct stat what {};
  fstat(file.get(), &what);
  CHECK(ranges[0].is_part_of(what, 2 * page));
  CHECK_FALSE(ranges[0].is_part_of(what, page));
}
