// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/job.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

#include "meshwise/core/wait.hpp"
#include "meshwise/core/yield_cost.hpp"
#include "meshwise/fabric/thread/job.hpp"

using namespace meshwise;
using namespace meshwise::detail;

TEST_CASE("what an exception says becomes the cause that other ranks report") {
  const auto thrown = std::make_exception_ptr(std::runtime_error("boom"));
  CHECK(text_of(thrown) == "boom");
  CHECK(text_of(std::make_exception_ptr(3)) == "an exception that is no std::exception");
  const Report cause = failure_of(4, text_of(thrown));
  CHECK(cause.code == Code::aborted);
  CHECK(cause.found == "rank 4 of the job failed: boom");
  CHECK(cause.ranks == std::vector<int>{4});
  CHECK(failure_of(-1, "x").ranks.empty());
}

TEST_CASE("ranks of one process address everything, and nobody of them dies alone") {
  ThreadJob job(3);
  Job& base = job;
  int x = 0;
  CHECK(base.reach(&x, sizeof(x)) == &x);
  CHECK(base.memory() == nullptr);
  CHECK(!base.died(1));
  CHECK(!base.attaches());
  CHECK(!base.read_private(1, &x, &x, sizeof(x)));
  const char* const text = "all_reduce";
  CHECK(base.shared_text(text) == text);
  base.enroll(&x, sizeof(x));
  base.dismiss(&x);
}

TEST_CASE("waits go by what the job knows of yields, and giving way takes little") {
  ThreadJob job(3);
  Job& base = job;
  int quick = 0;
  Backoff backoff = base.backoff(quick);
  CHECK(!backoff.tired());
  for (int k = 0; k < 100; ++k) base.give_way();
  base.recovers();  // threads do not outlive each other

  YieldCost yields;
  struct Other final : Job {
    explicit Other(YieldCost& cost) : Job(1, true, true, {}, &cost) {}
    const std::atomic<std::uint32_t>& failed() const override { return none; }
    Report cause() const override { return {}; }
    void fail(int, const std::exception_ptr&) noexcept override {}
    void* allocate(std::size_t) override { return nullptr; }
    void release(void*) noexcept override {}
    std::atomic<std::uint32_t> none{0};
  } other(yields);
  yields.took(900'000'000);
  Backoff crowded = other.backoff(quick);
  for (int k = 0; k < 9; ++k) crowded.pause();
  CHECK(crowded.tired());
  other.give_way();
  CHECK(quick == 0);
}
