// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/thread/inbox.hpp"

#include <doctest/doctest.h>

using namespace meshwise::detail;

namespace {
std::shared_ptr<Envelope> envelope(std::uint64_t tag, std::size_t bytes) {
  auto result = std::make_shared<Envelope>();
  result->tag = tag;
  result->bytes = bytes;
  return result;
}
}  // namespace

TEST_CASE("an inbox matches sender and tag, oldest first") {
  Inbox inbox;
  CHECK(inbox.take(0, 1) == nullptr);
  CHECK(inbox.posted() == 0);
  inbox.post(0, 3, envelope(1, 10));
  inbox.post(2, 3, envelope(1, 20));
  inbox.post(0, 3, envelope(2, 30));
  inbox.post(0, 3, envelope(1, 40));
  CHECK(inbox.posted() == 4);
  CHECK(inbox.take(1, 1) == nullptr);
  CHECK(inbox.take(0, 2)->bytes == 30);
  CHECK(inbox.take(0, 1)->bytes == 10);
  const auto last = inbox.take(0, 1);
  CHECK(last->bytes == 40);
  CHECK(last->state.load() == Envelope::State::taken);
  CHECK(inbox.take(0, 1) == nullptr);
  CHECK(inbox.take(2, 1)->bytes == 20);
}

TEST_CASE("a message can be withdrawn until it is taken") {
  Inbox inbox;
  const auto one = envelope(1, 10);
  const auto other = envelope(1, 20);
  CHECK(!inbox.withdraw(0, one.get()));
  inbox.post(0, 1, one);
  inbox.post(0, 1, other);
  CHECK(inbox.withdraw(0, one.get()));
  CHECK(!inbox.withdraw(0, one.get()));
  CHECK(inbox.take(0, 1) == other);
  CHECK(!inbox.withdraw(0, other.get()));
}
