// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/bench/verify.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "meshwise/collective/barrier.hpp"
#include "meshwise/fabric/thread/launch.hpp"

namespace {

using harness::Redop;
using harness::Verb;
using harness::Work;

Work work_of(const Work& like, int rank, int ranks, std::vector<std::byte>& in, std::vector<std::byte>& out) {
  Work work = like;
  work.rank = rank;
  work.ranks = ranks;
  work.root = ranks - 1;
  work.extent = harness::extent_of(work.verb, 600, work.element_bytes(), static_cast<std::size_t>(ranks));
  if (work.verb == Verb::all_to_all_v) {
    for (int peer = 0; peer < ranks; ++peer) {
      work.sent.push_back(harness::block_between(rank, peer, work.extent.count, ranks, work.ragged));
      work.received.push_back(harness::block_between(peer, rank, work.extent.count, ranks, work.ragged));
    }
  }
  in.resize(1024);
  out.resize(1024);
  work.out = out.data();
  work.in = work.in_place ? work.out : in.data();
  return work;
}

/// Flips a bit of the last element that a rank has to write.
void spoil(const Work& work) {
  const bool whole = work.verb != Verb::reduce_scatter && work.verb != Verb::scatter;
  std::size_t last = whole ? work.extent.whole - 1 : work.own_begin() + work.extent.count - 1;
  if (work.verb == Verb::all_to_all_v) {
    last = 0;
    for (const std::size_t count : work.received) last += count;
    --last;
  }
  work.out[(last + 1) * work.element_bytes() - 1] ^= std::byte{0x40};
}

/// Wrong elements on all ranks, of one call whose result is spoiled on the last rank or not.
std::int64_t wrong_elements(const Work& like, int ranks, bool spoiled) {
  std::atomic<std::int64_t> wrong{0};
  meshwise::launch(ranks, [&](meshwise::Communicator& world) {
    std::vector<std::byte> in, out;
    const Work work = work_of(like, world.rank(), ranks, in, out);
    harness::prepare(work, 3);
    meshwise::barrier(world);
    harness::perform_of(work)(world, work);
    meshwise::barrier(world);
    if (spoiled && world.rank() == ranks - 1) spoil(work);
    wrong += harness::count_wrong(work, 3);
  });
  return wrong;
}

TEST_CASE("every operation on every element is right, and one spoiled bit is found") {
  for (int verb = 0; verb < static_cast<int>(Verb::barrier); ++verb) {
    Work work;
    work.verb = static_cast<Verb>(verb);
    for (const bool in_place : {false, true}) {
      if (!(in_place ? harness::has_in_place(work.verb) : harness::has_out_of_place(work.verb))) continue;
      work.in_place = in_place;
      for (const harness::ElementName& element : harness::element_names) {
        work.element = element.kind;
        for (int redop = 0; redop < (harness::combines(work.verb) ? harness::redop_count : 1); ++redop) {
          work.redop = static_cast<Redop>(redop);
          CAPTURE(harness::verb_name(work.verb));
          CAPTURE(in_place);
          CAPTURE(element.name);
          CAPTURE(redop);
          CHECK(wrong_elements(work, 3, false) == 0);
          CHECK(wrong_elements(work, 3, true) == 1);
        }
      }
    }
  }
}

TEST_CASE("ranks alone, and blocks of different sizes") {
  for (int verb = 0; verb < static_cast<int>(Verb::barrier); ++verb) {
    Work work;
    work.verb = static_cast<Verb>(verb);
    work.in_place = !harness::has_out_of_place(work.verb);
    CHECK(wrong_elements(work, 1, false) == 0);
    CHECK(wrong_elements(work, 1, true) == 1);
  }
  Work work;
  work.verb = Verb::all_to_all_v;
  work.ragged = true;
  for (const int ranks : {1, 2, 3, 4}) CHECK(wrong_elements(work, ranks, false) == 0);
  CHECK(wrong_elements(work, 4, true) == 1);
}

TEST_CASE("uneven blocks add up to the same for all who send and receive") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::size_t count : {0UL, 1UL, 7UL, 100UL}) {
      std::vector<std::size_t> sums;
      for (int rank = 0; rank < ranks; ++rank) {
        std::size_t sent = 0, received = 0;
        for (int peer = 0; peer < ranks; ++peer) {
          sent += harness::block_between(rank, peer, count, ranks, true);
          received += harness::block_between(peer, rank, count, ranks, true);
        }
        sums.push_back(sent);
        sums.push_back(received);
      }
      for (const std::size_t sum : sums) {
        CHECK(sum == sums.front());
        CHECK(sum <= count * static_cast<std::size_t>(ranks));
      }
    }
  }
}

}  // namespace
