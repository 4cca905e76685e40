// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/mutex_latch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "meshwise/fabric/hold.hpp"

using namespace meshwise;

TEST_CASE("whoever holds a latch has it alone, as often as it likes") {
  detail::MutexLatch latch;
  int unguarded = 0;
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const detail::Hold outer(&latch);
        const detail::Hold inner(&latch);
        ++unguarded;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  CHECK(unguarded == 6000);
}

TEST_CASE("a latch that another thread holds is not taken by a try") {
  detail::MutexLatch latch;
  {
    const detail::TryHold free(&latch);
    CHECK(static_cast<bool>(free));
    const detail::TryHold again(&latch);
    CHECK(static_cast<bool>(again));
    std::thread([&] {
      const detail::TryHold taken(&latch);
      CHECK_FALSE(static_cast<bool>(taken));
    }).join();
  }
  std::thread([&] {
    const detail::TryHold free(&latch);
    CHECK(static_cast<bool>(free));
  }).join();
}

TEST_CASE("it shows that somebody waits for a latch") {
  detail::MutexLatch latch;
  CHECK_FALSE(latch.awaited());
  latch.lock();
  std::thread waiting([&] { const detail::Hold hold(&latch); });
  while (!latch.awaited()) std::this_thread::yield();
  latch.unlock();
  waiting.join();
  CHECK_FALSE(latch.awaited());
}
