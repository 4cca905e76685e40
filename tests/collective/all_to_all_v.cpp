// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/all_to_all_v.hpp"

#include <doctest/doctest.h>

#include "meshwise/schedule/direct.hpp"
#include "rooted.hpp"

namespace {

using namespace test;

/// Elements that one rank sends to another: a sparse matrix that all could know, but none need.
std::size_t amount(std::uint64_t seed, int from, int to, std::size_t scale) {
  Draw draw(seed * 1000003 + static_cast<std::uint64_t>(from * 64 + to));
  return draw(3) == 0 ? 0 : static_cast<std::size_t>(draw(scale + 1));
}

int item(int from, int to, std::size_t i) { return from * 1000000 + to * 10000 + static_cast<int>(i % 9973); }

void once(Communicator& communicator, std::uint64_t seed, std::size_t scale, bool started) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  std::vector<std::size_t> sent, received;
  for (int peer = 0; peer < ranks; ++peer) {
    sent.push_back(amount(seed, rank, peer, scale));
    received.push_back(amount(seed, peer, rank, scale));
  }
  Guarded<int> in(sum_of(sent, sent.size()));
  Guarded<int> out(sum_of(received, received.size()));
  int* next = in.data();
  for (int to = 0; to < ranks; ++to) {
    for (std::size_t i = 0; i < sent[static_cast<std::size_t>(to)]; ++i) *next++ = item(rank, to, i);
  }
  const Traffic before = communicator.traffic();
  if (started) {
    start_all_to_all_v(communicator, in.span(), out.span(), sent, received).wait();
  } else {
    all_to_all_v(communicator, in.span(), out.span(), sent, received);
  }
  const std::uint64_t volume = communicator.traffic().volume - before.volume;
  const std::string what = "all_to_all_v, seed " + std::to_string(seed) + ", ranks " + std::to_string(ranks);
  in.check(what.c_str());
  out.check(what.c_str());
  const int* at = out.data();
  for (int from = 0; from < ranks; ++from) {
    const std::size_t count = received[static_cast<std::size_t>(from)];
    require_items(at, count, what, [&](std::size_t i) { return item(from, rank, i); });
    at += count;
  }
  const std::size_t own = received[static_cast<std::size_t>(rank)];
  require(volume == (out.span().size() - own) * sizeof(int), what + ", volume");
}

}  // namespace

TEST_CASE("blocks of any sizes, of which every rank knows its own") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        for (const std::size_t scale : {0U, 1U, 5U, 1000U}) once(communicator, seed, scale, seed % 2 == 1);
      }
      once(communicator, 7, 65537, false);
    });
  }
}

TEST_CASE("counts that two ranks do not agree on are an error that names both") {
  for (const bool messages : both) {
    Setup setup;
    setup.messages = messages;
    const Outcome result = outcome(2, setup, [](Communicator& communicator) {
      std::vector<int> in(4), out(4);
      const std::vector<std::size_t> even{2, 2};
      const std::vector<std::size_t> odd{1, 3};
      // Rank 0 sends 3 to rank 1, which expects 2.
      all_to_all_v(communicator, in, out, communicator.rank() == 0 ? odd : even, even);
    });
    CAPTURE(result.text[0]);
    CAPTURE(result.text[1]);
    CHECK(!result.text[0].empty());
    CHECK(!result.text[1].empty());
  }
}

TEST_CASE("counts that do not fit the buffers are refused") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> in(4), out(4);
    const std::vector<std::size_t> even{2, 2};
    const std::vector<std::size_t> odd{1, 2};
    const std::vector<std::size_t> one{4};
    refuse([&] { all_to_all_v(communicator, in, out, odd, even); }, "an input as long as all send counts: 3");
    refuse([&] { all_to_all_v(communicator, in, out, even, odd); }, "an output as long as all receive counts: 3");
    refuse([&] { all_to_all_v(communicator, in, out, even, one); }, "a receive count for each of 2 ranks");
    refuse([&] { all_to_all_v(communicator, in, in, even, even); }, "an overlap");
    all_to_all_v<Direct>(communicator, in, out, even, even);
  });
}
