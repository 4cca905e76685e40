// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/job.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace meshwise;
using detail::ThreadJob;

TEST_CASE("the first failure is the cause that others report") {
  ThreadJob job(2);
  CHECK(job.one_process());
  CHECK(job.failed().load() == 0);
  job.fail(1, std::make_exception_ptr(std::runtime_error("boom")));
  job.fail(0, std::make_exception_ptr(std::runtime_error("later")));
  CHECK(job.failed().load() != 0);
  CHECK(job.cause().code == Code::aborted);
  CHECK(job.cause().found == "rank 1 of the job failed: boom");
  CHECK(job.cause().ranks == std::vector<int>{1});

  ThreadJob left(2);
  left.fail(-1, std::make_exception_ptr(5));
  CHECK(left.cause().found == "ranks left a group: an exception that is no std::exception");
  CHECK(left.cause().ranks.empty());
}

TEST_CASE("the first cause is thrown, not its echoes") {
  ThreadJob quiet(1);
  quiet.rethrow();

  Report report;
  report.code = Code::peer_left;
  const auto echo = std::make_exception_ptr(Error(report));
  ThreadJob job(3);
  job.fail(0, echo);
  job.fail(2, std::make_exception_ptr(std::runtime_error("cause")));
  job.fail(1, std::make_exception_ptr(std::runtime_error("later")));
  CHECK_THROWS_WITH_AS(job.rethrow(), "cause", std::runtime_error);

  ThreadJob left(2);
  left.fail(0, echo);
  CHECK_THROWS_AS(left.rethrow(), Error);
  left.fail(1, std::make_exception_ptr(5));
  CHECK_THROWS_AS(left.rethrow(), int);
}

TEST_CASE("what is buried is released when it is idle, or at the end") {
  ThreadJob job(2);
  auto* const busy = new (job.allocate(sizeof(bool))) bool(false);
  CHECK(reinterpret_cast<std::uintptr_t>(busy) % 128 == 0);
  job.bury(busy, [](void* flag) { return *static_cast<bool*>(flag); });
  job.sweep();
  *busy = true;
  job.sweep();
  job.bury(new (job.allocate(sizeof(bool))) bool(false), [](void* flag) { return *static_cast<bool*>(flag); });
}
