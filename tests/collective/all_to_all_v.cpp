// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/all_to_all_v.hpp"

#include <doctest/doctest.h>

#include "meshwise/collective/barrier.hpp"
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
    for (const std::size_t scale : {1U, 30000U}) {
      for (const std::size_t sent : {0U, 10U}) {
        for (int ranks = 2; ranks <= 4; ++ranks) {
          Setup setup;
          setup.messages = messages;
          const Outcome result = outcome(ranks, setup, [&](Communicator& communicator) {
            const auto me = static_cast<std::size_t>(communicator.rank());
            std::vector<std::size_t> send_counts(static_cast<std::size_t>(ranks), 2 * scale);
            std::vector<std::size_t> receive_counts = send_counts;
            if (me == 1) send_counts[0] = sent * scale;
            if (me == 0) receive_counts[1] = 11 * scale;
            std::vector<int> in(sum_of(send_counts, send_counts.size()));
            std::vector<int> out(sum_of(receive_counts, receive_counts.size()));
            all_to_all_v(communicator, in, out, send_counts, receive_counts);
            barrier(communicator);
          });
          const std::string words = "rank 1 sends " + std::to_string(sent * scale) +
                                    " elements to rank 0, which expects " + std::to_string(11 * scale);
          for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
            CAPTURE(result.text[rank]);
            CHECK(result.code[rank] == Code::mismatch);
            CHECK(contains(result.text[rank], words));
            CHECK(contains(result.text[rank], "make send_counts[0] on rank 1 and receive_counts[1] on rank 0 equal"));
          }
        }
      }
    }
  }
}

TEST_CASE("counts that do not fit the buffers are refused") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> in(4), out(4);
    const std::vector<std::size_t> even{2, 2};
    const std::vector<std::size_t> odd{1, 2};
    const std::vector<std::size_t> one{4};
    refuse([&] { all_to_all_v(communicator, in, out, odd, even); },
           "an input as long as all send counts: 1 + 2 = 3 elements, found 4");
    refuse([&] { all_to_all_v(communicator, in, out, even, odd); },
           "an output as long as all receive counts: 1 + 2 = 3 elements, found 4");
    refuse([&] { all_to_all_v(communicator, in, out, even, one); }, "a receive count for each of 2 ranks");
    refuse([&] { all_to_all_v(communicator, in, in, even, even); }, "an overlap");
    all_to_all_v<Direct>(communicator, in, out, even, even);
  });
}
