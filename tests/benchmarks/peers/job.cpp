// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/job.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

using namespace peers;

TEST_CASE("a job that ends is noticed, with its exit code and what it wrote") {
  Job job = Job::start([] {
    std::puts("first");
    std::puts("last");
    std::fflush(stdout);
    return 7;
  });
  CHECK(job.ends_within(20));
  CHECK(job.ending() == "exit code 7");
  CHECK(job.last_words() == "first\nlast\n");
  CHECK(job.last_words(5) == "last\n");
}

TEST_CASE("a job that does not end is ended") {
  Job job = Job::start([] {
    while (true) pause();
    return 0;
  });
  CHECK(job.running());
  CHECK(!job.ends_within(0.05));
  job.stop();
  CHECK(!job.running());
  CHECK(job.ending().rfind("killed by", 0) == 0);
}

TEST_CASE("a job that is moved is one job") {
  Job first = Job::start([] {
    while (true) pause();
    return 0;
  });
  Job second = std::move(first);
  CHECK(!first.running());
  CHECK(second.running());
  second = Job();
  CHECK(!second.running());
}
