// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/hold.hpp"

#include <doctest/doctest.h>

using namespace meshwise;

namespace {

/// Counts instead of keeping threads apart.
class Counting final : public detail::Latch {
 public:
  void lock() noexcept override { ++held; }
  bool try_lock() noexcept override {
    held += free ? 1 : 0;
    return free;
  }
  void unlock() noexcept override { --held; }
  bool awaited() const noexcept override { return false; }

  int held = 0;
  bool free = true;
};

}  // namespace

TEST_CASE("a latch is held as long as what holds it lives") {
  Counting latch;
  {
    const detail::Hold outer(&latch);
    CHECK(latch.held == 1);
    {
      const detail::Hold inner(&latch);
      CHECK(latch.held == 2);
    }
    CHECK(latch.held == 1);
  }
  CHECK(latch.held == 0);
}

TEST_CASE("a try holds what it has got, and gives back no more") {
  Counting latch;
  {
    const detail::TryHold attempt(&latch);
    CHECK(static_cast<bool>(attempt));
    CHECK(latch.held == 1);
  }
  CHECK(latch.held == 0);
  latch.free = false;
  {
    const detail::TryHold attempt(&latch);
    CHECK_FALSE(static_cast<bool>(attempt));
  }
  CHECK(latch.held == 0);
}

TEST_CASE("without a latch there is nothing to hold") {
  const detail::Hold hold(nullptr);
  const detail::TryHold attempt(nullptr);
  CHECK(static_cast<bool>(attempt));
}
