// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/inbox.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "meshwise/fabric/thread/job.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {
struct Post {
  ThreadJob job{2};
  Inbox inbox;
  Arrivals arrivals{inbox, 3};
  Envelopes envelopes{job};

  Envelope* send(int from, std::uint64_t tag, std::size_t bytes) {
    Envelope* const one = envelopes.make(from, tag, bytes, bytes);
    inbox.post(one);
    return one;
  }
};

void done(Envelope* one) { one->state.store(Envelope::State::done); }
}  // namespace

TEST_CASE("arrivals match sender and tag, oldest first") {
  Post post;
  CHECK(post.arrivals.take(0, 1) == nullptr);
  CHECK(post.arrivals.count() == 0);
  post.send(0, 1, 10);
  post.send(2, 1, 20);
  post.send(0, 2, 30);
  post.send(0, 1, 40);
  CHECK(post.arrivals.count() == 4);
  CHECK(post.arrivals.take(1, 1) == nullptr);
  CHECK(post.arrivals.take(0, 2)->bytes == 30);
  CHECK(post.arrivals.take(0, 1)->bytes == 10);
  post.send(0, 1, 50);
  const Envelope* const last = post.arrivals.take(0, 1);
  CHECK(last->bytes == 40);
  CHECK(last->state.load() == Envelope::State::taken);
  CHECK(post.arrivals.take(0, 1)->bytes == 50);
  CHECK(post.arrivals.take(0, 1) == nullptr);
  CHECK(post.arrivals.take(2, 1)->bytes == 20);
  CHECK(post.arrivals.count() == 5);
}

TEST_CASE("a withdrawn message is passed over, and free again afterwards") {
  Post post;
  Envelope* const one = post.send(0, 1, 10);
  Envelope* const other = post.send(0, 1, 20);
  auto posted = Envelope::State::posted;
  CHECK(one->state.compare_exchange_strong(posted, Envelope::State::withdrawn));
  CHECK(!one->settled());
  CHECK(post.arrivals.take(0, 1) == other);
  CHECK(one->settled());
}

TEST_CASE("envelopes are used again once their receivers are through with them") {
  for (const std::size_t bytes : {0U, 100U, 3000U, 60000U, 100000U}) {
    Post post;
    Envelope* const first = post.send(1, 7, bytes);
    std::memset(first->copy(), 1, bytes);
    Envelope* const second = post.send(1, 7, bytes);
    CHECK(first != second);
    done(post.arrivals.take(1, 7));
    if (bytes <= Envelope::buffered) CHECK(post.send(1, 7, bytes) == first);
    done(post.arrivals.take(1, 7));
    if (bytes <= Envelope::buffered) done(post.arrivals.take(1, 7));
    // One that its sender still looks at stays what it is.
    Envelope* const held = post.send(1, 7, bytes);
    held->held = true;
    done(post.arrivals.take(1, 7));
    CHECK(post.envelopes.make(1, 7, bytes, bytes) != held);
    CHECK(held->settled());
    held->held = false;
  }
}

TEST_CASE("messages of many threads at once all arrive, those of each in order") {
  Inbox inbox;
  ThreadJob job(4);
  constexpr int each = 3000;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Envelopes>> envelopes;
  for (int from = 0; from < 3; ++from) envelopes.push_back(std::make_unique<Envelopes>(job));
  for (int from = 0; from < 3; ++from) {
    threads.emplace_back([&, from] {
      for (int k = 0; k < each; ++k) {
        inbox.post(envelopes[static_cast<std::size_t>(from)]->make(from, 5, static_cast<std::size_t>(k), 0));
      }
    });
  }
  Arrivals arrivals(inbox, 3);
  std::vector<std::size_t> next(3, 0);
  for (int got = 0; got < 3 * each;) {
    for (int from = 0; from < 3; ++from) {
      Envelope* const one = arrivals.take(from, 5);
      if (one == nullptr) continue;
      CHECK(one->bytes == next[static_cast<std::size_t>(from)]++);
      done(one);
      ++got;
    }
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(arrivals.count() == 3 * each);
}

TEST_CASE("what is on its way when its sender goes can still be received") {
  ThreadJob job(2);
  Inbox inbox;
  Arrivals arrivals(inbox, 1);
  {
    Envelopes envelopes(job);
    Envelope* const one = envelopes.make(0, 3, 4, 4);
    std::memcpy(one->copy(), "abc", 4);
    inbox.post(one);
  }
  Envelope* const one = arrivals.take(0, 3);
  REQUIRE(one != nullptr);
  CHECK(std::strcmp(static_cast<const char*>(one->copy()), "abc") == 0);
  done(one);
  job.sweep();
}
