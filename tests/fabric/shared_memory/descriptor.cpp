// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "ranks.hpp"

namespace {

using namespace meshwise::detail;

bool is_open(int number) { return fcntl(number, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a descriptor is closed by its last owner") {
  int number = -1;
  {
    Descriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = one.get();
    REQUIRE(is_open(number));
    Descriptor two(std::move(one));
    CHECK_FALSE(one);
    CHECK(two.get() == number);
    Descriptor three;
    three = std::move(two);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
  Descriptor kept(open("/dev/null", O_RDONLY | O_CLOEXEC));
  number = kept.release();
  kept = Descriptor();
  CHECK(is_open(number));
  close(number);
}

TEST_CASE("mapped pages go with their owner, but not those of a parent") {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  void* at = nullptr;
  {
    MappedPages one(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), bytes);
    at = one.begin();
    REQUIRE(at != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
      one = MappedPages();
      _exit(mincore(at, bytes, &resident) == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    const MappedPages two(std::move(one));
    CHECK(mincore(at, bytes, &resident) == 0);
  }
  CHECK(mincore(at, bytes, &resident) == -1);
}
