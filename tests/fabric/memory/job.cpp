// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/job.hpp"

#include <doctest/doctest.h>

#include <exception>
#include <stdexcept>
#include <string>

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
