// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/processors.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace meshwise::detail;

/// Folders and files that go with it.
class Tree {
 public:
  Tree() {
    char name[] = "/tmp/meshwise_testXXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root_ = name;
  }
  ~Tree() {
    for (std::size_t k = made_.size(); k-- > 0;) std::remove(made_[k].c_str());
    std::remove(root_.c_str());
  }
  void folder(const std::string& path) {
    mkdir((root_ + path).c_str(), 0700);
    made_.push_back(root_ + path);
  }
  void file(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen((root_ + path).c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
    made_.push_back(root_ + path);
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
  std::vector<std::string> made_;
};

}  // namespace

TEST_CASE("the permitted processors follow the mask of the thread") {
  const ProcessorSet all = ProcessorSet::permitted();
  CHECK(all.count() >= 1);
  std::thread([&all] {
    cpu_set_t mask;
    REQUIRE(sched_getaffinity(0, sizeof(mask), &mask) == 0);
    std::size_t last = CPU_SETSIZE;
    while (!CPU_ISSET(last - 1, &mask)) --last;
    CPU_ZERO(&mask);
    CPU_SET(last - 1, &mask);
    REQUIRE(sched_setaffinity(0, sizeof(mask), &mask) == 0);
    ProcessorSet one = ProcessorSet::permitted();
    CHECK(one.count() == 1);
    CHECK((one.word[(last - 1) / 64] >> (last - 1) % 64) == 1);
    one.add(all);
    CHECK(one.count() == all.count());
  }).join();
}

TEST_CASE("quotas are rounded up, and what is none is none") {
  CHECK(quota_of("150000", "100000") == 2);
  CHECK(quota_of("100000", "100000") == 1);
  CHECK(quota_of("1000", "100000") == 1);
  CHECK(quota_of("max", "100000") == 0);
  CHECK(quota_of("-1", "100000") == 0);
  CHECK(quota_of("", "") == 0);
  CHECK(quota_of("100000", "0") == 0);
  CHECK(quota_of("9223372036854775807", "1") == 0);
}

TEST_CASE("the least quota of a control group and those around it counts") {
  Tree tree;
  tree.folder("/a");
  tree.folder("/a/b");
  tree.file("/a/cpu.max", "300000 100000\n");
  tree.file("/a/b/cpu.max", "max 100000\n");
  CHECK(processor_quota("0::/a/b\n", tree.root()) == 3);
  CHECK(processor_quota("1:cpuset:/x\n0::/a\n", tree.root()) == 3);
  CHECK(processor_quota("0::/\n", tree.root()) == 0);
  CHECK(processor_quota("0::/../../a\n", tree.root()) == 0);  // not shown to this process
  CHECK(processor_quota("", tree.root()) == 0);
  CHECK(processor_quota("nonsense\n:\n::\n0:", tree.root()) == 0);
  tree.file("/cpu.max", "150000 100000\n");
  CHECK(processor_quota("0::/a/b", tree.root()) == 2);
  CHECK(processor_quota("0::/\n", tree.root()) == 2);
  CHECK(processor_quota("0::/../../a\n", tree.root()) == 2);
}

TEST_CASE("quotas of the first version of control groups count too") {
  Tree tree;
  tree.folder("/cpu");
  tree.folder("/cpu/a");
  tree.file("/cpu/cpu.cfs_quota_us", "-1\n");
  tree.file("/cpu/cpu.cfs_period_us", "100000\n");
  tree.file("/cpu/a/cpu.cfs_quota_us", "50000\n");
  tree.file("/cpu/a/cpu.cfs_period_us", "100000\n");
  CHECK(processor_quota("4:cpu,cpuacct:/a\n3:memory:/a\n", tree.root()) == 1);
  CHECK(processor_quota("4:cpu,cpuacct:/\n", tree.root()) == 0);
  CHECK(processor_quota("4:cpuset:/a\n", tree.root()) == 0);
}
