// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/tuning/fingerprint.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace meshwise;
using namespace meshwise::detail;

namespace {

/// A folder that looks like the root of a host, and goes with this.
class Host {
 public:
  Host() {
    char name[] = "/tmp/meshwise_host_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root_ = name;
  }
  ~Host() { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::FILE* const file = std::fopen(whole.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }

  HostFiles files() const { return HostFiles(root_); }

 private:
  std::string root_;
};

}  // namespace

TEST_CASE("a host is described by what its files say") {
  Host host;
  host.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t:  Some   Processor #3 \nflags : x\n");
  host.put("/sys/devices/system/cpu/online", "0-2,5\n");
  for (const int cpu : {0, 1, 2, 5}) {
    host.put("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/physical_package_id",
             cpu < 2 ? "0\n" : "1\n");
  }
  host.put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n");
  host.put("/sys/devices/system/node/has_cpu", "0-1\n");
  const auto cache = [&](int index, const char* level, const char* type, const char* size) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    host.put(folder + "level", level);
    host.put(folder + "type", type);
    host.put(folder + "size", size);
  };
  cache(0, "1\n", "Data\n", "48K\n");
  cache(1, "1\n", "Instruction\n", "32K\n");
  cache(2, "2\n", "Unified\n", "2048K\n");
  const Fingerprint found = fingerprint_of(host.files(), 3);
  CHECK(found.values[Fingerprint::cpu] == "Some Processor ?3");
  CHECK(found.values[Fingerprint::cores] == "3");
  CHECK(found.values[Fingerprint::topology] == "packages=2 nodes=2 threads=2");
  CHECK(found.values[Fingerprint::caches] == "L1=48K L2=2048K");
  CHECK(host.files().second_level_cache() == 2048 << 10);
  CHECK_FALSE(found.values[Fingerprint::version].empty());
}

TEST_CASE("a host that says nothing is unknown, not an error") {
  Host host;
  const Fingerprint found = fingerprint_of(host.files(), 1);
  CHECK(found.values[Fingerprint::cpu] == "unknown");
  CHECK(found.values[Fingerprint::topology] == "packages=1 nodes=1 threads=1");
  CHECK(found.values[Fingerprint::caches] == "unknown");
  CHECK(host.files().second_level_cache() == 0);
}

TEST_CASE("this host is itself, with other cores another one") {
  const Fingerprint one = Fingerprint::here(2);
  CHECK(one == Fingerprint::here(2));
  CHECK(one.difference(Fingerprint::here(2)) == -1);
  CHECK(one.difference(Fingerprint::here(3)) == Fingerprint::cores);
  CHECK(one.difference(Fingerprint{}) == -1);
  for (const std::string& value : one.values) CHECK(plain_text(value) == value);
}

TEST_CASE("lists of the system, right and wrong ones") {
  CHECK(numbers_of("0-3,8\n") == std::vector<int>{0, 1, 2, 3, 8});
  CHECK(numbers_of("").empty());
  CHECK(numbers_of("\n").empty());
  CHECK(numbers_of("7") == std::vector<int>{7});
  CHECK(numbers_of("3-1").empty());
  CHECK(numbers_of("0-99999999999999999999").size() == std::size_t{1} << 16);
}

TEST_CASE("sizes of caches, right and wrong ones") {
  CHECK(bytes_of("48K") == 48 << 10);
  CHECK(bytes_of("2M") == 2 << 20);
  CHECK(bytes_of("100") == 100);
  for (const char* wrong : {"", "K", "x", "2MB", "-2K", "2 K", "999999999999999999999999K"})
    CHECK(bytes_of(wrong) == 0);
}

TEST_CASE("plain text has no bytes that a terminal obeys, and an end") {
  CHECK(plain_text("  a \t b\x1b[2J\n") == "a b?[2J");
  CHECK(plain_text(std::string(1000, 'x')).size() == 200);
  CHECK(plain_text("") == "");
}
