// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/alarm.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

using namespace meshwise;

namespace {

constexpr long slice = 5'000'000;

/// Something to wait for, in memory that forks share.
struct Event {
  detail::Alarm alarm;
  std::atomic<int> count{0};

  void await(int wanted) {
    const auto ready = [&] { return count.load(std::memory_order_acquire) >= wanted; };
    while (!ready()) alarm.sleep(slice, ready);
  }
  void happen() {
    count.fetch_add(1, std::memory_order_release);
    alarm.ring();
  }
};

}  // namespace

TEST_CASE("what is there already is not slept for, and a slice ends") {
  detail::Alarm alarm;
  alarm.ring();  // nobody sleeps
  int asked = 0;
  alarm.sleep(999'999'999, [&] { return ++asked > 0; });
  CHECK(asked == 1);
  alarm.sleep(1'000'000, [] { return false; });
}

TEST_CASE("threads wake each other") {
  Event ping, pong;
  std::thread other([&] {
    for (int k = 1; k <= 500; ++k) {
      ping.await(k);
      pong.happen();
    }
  });
  for (int k = 1; k <= 500; ++k) {
    ping.happen();
    pong.await(k);
  }
  other.join();
  CHECK(pong.count == 500);
}

TEST_CASE("processes wake each other, and one that was killed in its sleep keeps nobody") {
  struct Both {
    Event ping, pong;
  };
  void* const memory = mmap(nullptr, sizeof(Both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Both& both = *new (memory) Both;
  const pid_t child = fork();
  if (child == 0) {
    for (int k = 1; k <= 200; ++k) {
      both.ping.await(k);
      both.pong.happen();
    }
    both.ping.await(1000);
    _exit(0);
  }
  for (int k = 1; k <= 200; ++k) {
    both.ping.happen();
    both.pong.await(k);
  }
  usleep(2000);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  both.ping.happen();
  std::thread other([&] { both.ping.await(202); });
  both.ping.happen();
  other.join();
  CHECK(both.ping.count == 202);
  munmap(memory, sizeof(Both));
}
