// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/job.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace meshwise;
using detail::Poison;
using detail::ThreadJob;

TEST_CASE("a failure reaches all groups that live, and those that come later") {
  ThreadJob job(2);
  const auto one = std::make_shared<Poison>();
  job.watch(one);
  for (int k = 0; k < 100; ++k) job.watch(std::make_shared<Poison>());
  CHECK(!one->set());
  job.fail(1, std::make_exception_ptr(std::runtime_error("boom")));
  CHECK(one->set());
  CHECK(one->cause().code == Code::aborted);
  CHECK(one->cause().found == "rank 1 of the job failed: boom");
  const auto late = std::make_shared<Poison>();
  job.watch(late);
  CHECK(late->set());
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
