// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/join.hpp"

#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "../../support/processes.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/group.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {

/// What each of so many ranks says, after `before(rank)` in its process.
std::vector<std::string> say_of_ranks(int ranks, const LaunchOptions& options, const std::function<void(int)>& before,
                                      const std::function<std::string(Communicator&)>& body) {
  Segments segments = Segments::create(ranks);
  test::Children children(ranks, [&](int rank, const test::Line&) {
    std::string said;
    auto run = [&](Communicator& world) { said = body(world); };
    const Segments::Descriptors files = segments.release();
    before(rank);
    join_job<>(rank, ranks, files.control, files.arenas, options, program_of(run));
    return said;
  });
  std::vector<std::string> result;
  for (int rank = 0; rank < ranks; ++rank) {
    result.push_back(children.hear(rank));
    children.reap(rank);
  }
  return result;
}

Job& job_of(Communicator& world) { return dynamic_cast<MemoryEndpoint&>(world.endpoint()).job(); }

/// Large messages and vectors in private memory, all around; "right", or what is wrong.
std::string exchange_private(Communicator& world) {
  const std::size_t count = 200'000;
  const auto rank = static_cast<std::uint32_t>(world.rank()), size = static_cast<std::uint32_t>(world.size());
  std::vector<std::uint32_t> mine(count), theirs(count);
  std::iota(mine.begin(), mine.end(), rank * 7);
  group(world, [&](Group& g) {
    g.send(mine, static_cast<int>((rank + 1) % size));
    g.receive(theirs, static_cast<int>((rank + size - 1) % size));
  });
  const std::uint32_t from = (rank + size - 1) % size;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (theirs[i] != from * 7 + i) return "wrong message";
  }
  all_reduce(world, mine);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (mine[i] != 7 * (size * (size - 1) / 2) + size * i) return "wrong sum";
  }
  return "right";
}

/// Whether this process may not trace others any more, whatever it was allowed before.
bool drop_tracing() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  const unsigned bit = 1U << CAP_SYS_PTRACE;
  data[0].effective &= ~bit;
  data[0].permitted &= ~bit;
  data[0].inheritable &= ~bit;
  return syscall(SYS_capset, &header, data) == 0;
}

/// Whether a rank says why rank 0 has failed, be it that it was still joining or not.
bool is_told(const std::string& text, const std::string& cause) {
  return text.find("rank 0 of the job failed: " + cause) != std::string::npos ||
         text.find("(rank 1): rank 0 failed: " + cause) != std::string::npos;
}

}  // namespace

TEST_CASE("the settings of rank 0 are those of all") {
  const auto said = say_of_ranks(
      3, {}, [](int rank) { setenv("MESHWISE_ALGORITHM", rank == 0 ? "all_reduce=ring" : "all_reduce=circulant", 1); },
      [](Communicator& world) {
        barrier(world);
        return std::string(algorithm_name(job_of(world).settings().of(Operation::all_reduce).algorithm));
      });
  CHECK(said == std::vector<std::string>(3, "ring"));
}

TEST_CASE("settings that cannot be read end the job with their own words") {
  const auto said = say_of_ranks(
      2, {}, [](int) { setenv("MESHWISE_ALGORITHM", "all_reduce=rnig", 1); },
      [](Communicator& world) {
        barrier(world);
        return std::string("ran");
      });
  CHECK(said[0].find("MESHWISE_ALGORITHM: expected one of") != std::string::npos);
  CHECK_MESSAGE(is_told(said[1], "MESHWISE_ALGORITHM"), said[1]);
}

TEST_CASE("ranks read each other's private memory where the system lets them, all or none") {
  const auto answer = [](Communicator& world) {
    const std::string how = job_of(world).attaches() ? "attached, " : "staged, ";
    return how + exchange_private(world);
  };
  const auto said = say_of_ranks(
      3, {}, [](int) {}, answer);
  CHECK(said[0].find("right") != std::string::npos);
  CHECK(said == std::vector<std::string>(3, said[0]));

  // One that may not be traced, by ranks that have no right to trace whom they like.
  const auto one_hides = say_of_ranks(
      3, {},
      [](int rank) {
        if (!drop_tracing()) _exit(1);
        prctl(PR_SET_DUMPABLE, rank == 1 ? 0 : 1);
      },
      answer);
  CHECK(one_hides == std::vector<std::string>(3, "staged, right"));

  // One that does not want it.
  const auto one_refuses = say_of_ranks(
      3, {},
      [](int rank) {
        if (rank == 2) setenv("MESHWISE_ATTACH", "0", 1);
      },
      answer);
  CHECK(one_refuses == std::vector<std::string>(3, "staged, right"));

  const auto alone = say_of_ranks(
      1, {}, [](int) {}, answer);
  CHECK(alone[0] == "staged, right");
}

TEST_CASE("a small /dev/shm limits nothing") {
  test::Children run(1, [](int, const test::Line&) -> std::string {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=64m") != 0) {
      return "not permitted";
    }
    const auto said = say_of_ranks(
        2, {}, [](int) {},
        [](Communicator& world) -> std::string {
          Heap heap(*world.endpoint().memory());
          const std::size_t bytes = std::size_t{96} << 20;
          const Storage storage = heap.allocate(bytes);
          const std::span<float> data(reinterpret_cast<float*>(storage.data()), bytes / sizeof(float));
          for (float& x : data) x = 1;
          all_reduce(world, data);
          for (const float x : data) {
            if (x != 2) return "wrong";
          }
          return exchange_private(world);
        });
    return said[0] + ", " + said[1];
  });
  const std::string said = run.hear(0);
  if (said == "not permitted") {
    MESSAGE("a file system of its own is not permitted here");
  } else {
    CHECK(said == "right, right");
  }
}

TEST_CASE("ranks that name different tables all take that of rank 0, and run to the end") {
  char folder[] = "/tmp/meshwise_tables_XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const auto path = [&](int rank) { return std::string(folder) + "/" + std::to_string(rank); };
  const char* const algorithms[] = {"ring", "circulant", "teleport"};
  for (int rank = 0; rank < 3; ++rank) {
    std::FILE* const file = std::fopen(path(rank).c_str(), "w");
    REQUIRE(file != nullptr);
    std::fprintf(file, "meshwise-table 1\nall_reduce * memory 3 0-inf %s\nall_reduce * foreign 3 0-inf %s\n",
                 algorithms[rank], algorithms[rank]);
    std::fclose(file);
  }
  const auto said = say_of_ranks(
      3, {}, [&](int rank) { setenv("MESHWISE_TUNING", path(rank).c_str(), 1); },
      [](Communicator& world) {
        const std::string text = world.explain(Operation::all_reduce, 1 << 20);
        const std::size_t at = text.find("chosen: ");
        return text.substr(at, text.find(',', at) - at) + ", " + exchange_private(world);
      });
  CHECK(said == std::vector<std::string>(3, "chosen: ring, right"));
  for (int rank = 0; rank < 3; ++rank) unlink(path(rank).c_str());
  rmdir(folder);
}

TEST_CASE("a table that cannot be read ends the job with its own words") {
  const auto said = say_of_ranks(
      2, {}, [](int) { setenv("MESHWISE_TUNING", "/no/such/table", 1); },
      [](Communicator& world) {
        barrier(world);
        return std::string("ran");
      });
  CHECK(said[0].find("MESHWISE_TUNING: /no/such/table: expected a measured table") != std::string::npos);
  CHECK_MESSAGE(is_told(said[1], "MESHWISE_TUNING"), said[1]);
}
