// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/memory_file.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "ranks.hpp"

namespace {

using namespace meshwise::detail;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

struct stat look(const Descriptor& file) {
  struct stat result {};
  fstat(file.get(), &result);
  return result;
}

}  // namespace

TEST_CASE("files in memory have no name, and what is sealed keeps its size") {
  const auto before = test::names_in("/dev/shm");
  for (const bool fixed : {false, true}) {
    const Descriptor file = memory_file("test");
    REQUIRE(file);
    CHECK(look(file).st_nlink == 0);
    CHECK((fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(reserve_pages(file.get(), 0, 2 * mib) == 0);
    seal(file, fixed);
    CHECK(ftruncate(file.get(), 0) == -1);
    CHECK(reserve_pages(file.get(), 2 * mib, mib) == (fixed ? EPERM : 0));
    CHECK(fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE) == -1);
    // Memory can be given back all the same.
    CHECK(give_back_pages(file.get(), 0, mib));
    CHECK(static_cast<std::uint64_t>(look(file).st_blocks) * 512 == (fixed ? mib : 2 * mib));
  }
  CHECK(test::names_in("/dev/shm") == before);
}

TEST_CASE("where anonymous files are forbidden, one in /dev/shm that never had a name does") {
  const auto before = test::names_in("/dev/shm");
  {
    const Descriptor file = unnamed_file("/dev/shm");
    if (!file) {
      MESSAGE("no tmpfs at /dev/shm here");
      return;
    }
    CHECK(look(file).st_nlink == 0);
    CHECK((fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(reserve_pages(file.get(), 0, 3 * mib + 5) == 0);
    CHECK(look(file).st_size == static_cast<off_t>(3 * mib + 5));
    seal(file, true);  // cannot be; harmless
    CHECK(test::names_in("/dev/shm") == before);
  }
  CHECK_FALSE(unnamed_file("/no/such/folder"));
}

TEST_CASE("a file system without space is an error that leaves nothing reserved") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    // In a view of its own of the file systems, where this is permitted.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=4m") != 0) {
      return "not permitted";
    }
    const Descriptor file = unnamed_file("/dev/shm");
    if (!file) return "no file";
    if (const int error = reserve_pages(file.get(), 0, 5 * mib); error != ENOSPC) return "error " + system_error(error);
    if (look(file).st_blocks != 0) return "blocks " + std::to_string(look(file).st_blocks);
    if (reserve_pages(file.get(), 0, 3 * mib) != 0 || reserve_pages(file.get(), 3 * mib, 3 * mib) != ENOSPC) return "3";
    return std::to_string(static_cast<std::uint64_t>(look(file).st_blocks) * 512 / mib) + " MiB left";
  });
  const std::string said = child.hear(0);
  if (said == "not permitted") {
    MESSAGE("file systems cannot be mounted here");
    return;
  }
  CHECK(said == "3 MiB left");
}

TEST_CASE("the limit of the size of files is an error too, and ends nobody") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    rlimit limit{2 * mib, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Descriptor file = memory_file("test");
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const int error = reserve_pages(file.get(), mib, 2 * mib);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    if (sigismember(&after, SIGXFSZ) != sigismember(&before, SIGXFSZ)) return "mask";
    sigpending(&after);
    if (sigismember(&after, SIGXFSZ) == 1) return "pending";
    return system_error(error);
  });
  CHECK(child.hear(0) == system_error(EFBIG));
  CHECK(child.reap(0) == 0);
}

TEST_CASE("a signal now and then does not keep memory from being reserved") {
  test::Children child(1, [](int, const test::Line&) -> std::string {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &often, nullptr);
    const Descriptor file = memory_file("test");
    const int error = reserve_pages(file.get(), 0, 64 * mib);
    return error == 0 ? std::to_string(static_cast<std::uint64_t>(look(file).st_blocks) * 512 / mib)
                      : system_error(error);
  });
  CHECK(child.hear(0) == "64");
}
