// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/shared_bytes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "meshwise/fabric/thread/job.hpp"

using namespace meshwise::detail;

TEST_CASE("shared bytes grow, and stay where they are as long as they suffice") {
  ThreadJob job(1);
  SharedBytes bytes;
  CHECK(bytes.data() == nullptr);
  CHECK(bytes.take(job, 0) == nullptr);
  std::byte* const first = bytes.take(job, 100);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % 128 == 0);
  std::memset(first, 7, 100);
  CHECK(bytes.take(job, 50) == first);
  CHECK(bytes.data() == first);
  std::memset(bytes.take(job, 5000), 8, 5000);
}

TEST_CASE("abandoned bytes are not used again while the job lasts") {
  ThreadJob job(1);
  SharedBytes bytes;
  bytes.abandon();
  std::byte* const first = bytes.take(job, 100);
  bytes.abandon();
  CHECK(bytes.data() == nullptr);
  job.sweep();
  CHECK(bytes.take(job, 100) != first);
  std::memset(first, 7, 100);
}
