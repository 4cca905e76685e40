// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/shared_memory/job.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../support/processes.hpp"
#include "meshwise/fabric/shared_memory/segments.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {

/// What a job of one rank says in a process of its own.
template <class Body>
std::string say(const Body& body) {
  Segments segments = Segments::create(1);
  test::Children one(1, [&](int, const test::Line&) {
    const Segments::Descriptors files = segments.release();
    SharedMemoryJob job(std::make_unique<Space>(0, 1, files.control, files.arenas, 10.0), Settings{});
    return body(job);
  });
  return one.hear(0);
}

#define REQUIRE_THAT(condition) \
  if (!(condition)) return std::string("not so: " #condition)

}  // namespace

TEST_CASE("what is in the arena is reached at its own address, the rest where it is registered") {
  CHECK(say([](SharedMemoryJob& job) {
          REQUIRE_THAT(!job.one_process());
          void* const shared = job.allocate(100);
          REQUIRE_THAT(reinterpret_cast<std::uintptr_t>(shared) % 128 == 0);
          REQUIRE_THAT(job.reach(shared, 100) == shared);
          job.release(shared);
          std::vector<int> own(100'000);
          REQUIRE_THAT(job.reach(own.data(), 4) == nullptr);
          job.enroll(own.data(), own.size() * sizeof(int));
          const void* const alias = job.reach(own.data() + 10, 40);
          REQUIRE_THAT(alias != nullptr && alias != own.data() + 10);
          own[10] = 77;
          REQUIRE_THAT(*static_cast<const int*>(alias) == 77);
          REQUIRE_THAT(job.reach(own.data() + 10, own.size() * sizeof(int) + 8192) == nullptr);
          job.dismiss(own.data());
          REQUIRE_THAT(job.reach(own.data(), 4) == nullptr);
          REQUIRE_THAT(own[10] == 77);
          return std::string("fine");
        }) == "fine");
}

TEST_CASE("a text is copied once for all to read") {
  CHECK(say([](SharedMemoryJob& job) {
          static const char literal[] = "all_reduce";
          const char* const copy = job.shared_text(literal);
          REQUIRE_THAT(copy != literal && std::string(copy) == "all_reduce");
          REQUIRE_THAT(job.shared_text(literal) == copy);
          REQUIRE_THAT(job.space().addressable(copy, sizeof(literal)));
          return std::string("fine");
        }) == "fine");
}

TEST_CASE("the first failure of a rank stays in its record, as an Error or as text") {
  CHECK(say([](SharedMemoryJob& job) {
          REQUIRE_THAT(job.failed().load() == 0);
          job.fail(0, std::make_exception_ptr(std::runtime_error("boom")));
          job.fail(0, std::make_exception_ptr(std::runtime_error("later")));
          REQUIRE_THAT(job.failed().load() == 1);
          const RankRecord& record = job.space().control().record(0);
          REQUIRE_THAT(record.report.unpack().found == "boom");
          REQUIRE_THAT(job.cause().code == Code::aborted);
          REQUIRE_THAT(job.cause().found.find("rank 0 of the job failed") == 0);
          REQUIRE_THAT(job.cause().found.find("boom") != std::string::npos);
          return std::string("fine");
        }) == "fine");
  CHECK(say([](SharedMemoryJob& job) {
          Report report;
          report.code = Code::timed_out;
          report.operation = "barrier";
          report.found = "nobody";
          job.fail(0, std::make_exception_ptr(Error(report)));
          const Report kept = job.space().control().record(0).report.unpack();
          REQUIRE_THAT(kept.code == Code::timed_out && kept.operation == "barrier" && kept.found == "nobody");
          return std::string("fine");
        }) == "fine");
}
