// SPDX-License-Identifier: Apache-2.0
// Counts beyond 32 bits: by arithmetic everywhere, and once for real where there is memory enough.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <span>
#include <string>

#include "../support/sanitized.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/detail/regions.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/volume.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/move.hpp"
#include "meshwise/fabric/staging.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {

constexpr std::size_t vast = (std::size_t{1} << 33) + 3;

/// Free memory in bytes, 0 if it cannot be known.
std::size_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    std::size_t kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("the parts of 2^33 + 3 elements cover them without gaps, by any number of ranks and lanes") {
  static_assert(rank_part(vast, 3, 2).begin + rank_part(vast, 3, 2).size == vast);
  for (const int ranks : {1, 2, 3, 7, 64, 1000}) {
    std::size_t end = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range part = rank_part(vast, ranks, rank);
      CHECK(part.begin == end);
      CHECK(part.size >= vast / static_cast<std::size_t>(ranks));
      CHECK(part.size <= vast / static_cast<std::size_t>(ranks) + 1);
      std::size_t within = 0;
      for (int lane = 0; lane < 5; ++lane) {
        const Range slice = lane_part(part.size, 8, lane, 5);
        CHECK(slice.begin == within);
        within += slice.size;
      }
      CHECK(within == part.size);
      end += part.size;
    }
    CHECK(end == vast);
  }
}

TEST_CASE("places, volumes and chunks of 2^33 + 3 elements are exact") {
  for (const int ranks : {2, 3, 8}) {
    std::size_t count = vast;
    Call call;
    call.shape = Shape{Operation::all_reduce, ranks, 0, false};
    call.count = count;
    call.element = ElementKind::f64;
    call.element_size = 8;
    call.regions = Regions{&span_region, &count, 0, true};
    const Region last = span_region(&count, call.shape, Buffer::input, 0, ranks - 1);
    CHECK(last.offset + last.size() == vast);
    CHECK(last.offset > std::numeric_limits<std::uint32_t>::max());
    std::uint64_t all = 0;
    for (int rank = 0; rank < ranks; ++rank) all += volume(call, rank);
    CHECK(all == 2 * static_cast<std::uint64_t>(ranks - 1) * vast * 8);
    for (int block = 0; block < ranks; ++block) {
      CHECK(block_size(call, block) == rank_part(vast, ranks, block).size);
    }
    const StageCut cut = StageCut::of(call, ranks, std::size_t{4} << 20);
    CHECK(cut.chunks * cut.chunk >= block_size(call, ranks - 1) * 8);
    CHECK((cut.chunks - 1) * cut.chunk < block_size(call, ranks - 1) * 8);
    CHECK(scratch_layout(call, ranks, 1).slot >= block_size(call, ranks - 1) * 8);
  }
}

TEST_CASE("more than 2^31 elements of one byte, for real") {
  constexpr std::size_t count = (std::size_t{1} << 31) + 4099;
  constexpr std::size_t ranks = 2;
  const char* const full = std::getenv("MESHWISE_FULL");
  const std::size_t needed = 3 * ranks * count;
  if (building::sanitized || free_memory() < needed * (full != nullptr ? 1 : 2)) {
    MESSAGE("not run: it needs " << (needed >> 20) << " MiB of memory");
    return;
  }
  launch_processes(static_cast<int>(ranks), [&](Communicator& world) {
    Heap heap(*world.endpoint().memory());
    const Storage storage = heap.allocate(count);
    const std::span<std::uint8_t> data(reinterpret_cast<std::uint8_t*>(storage.data()), count);
    const auto rank = static_cast<std::size_t>(world.rank());
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::uint8_t>((i >> 16) + i + rank);
    };
    const auto right = [&](std::size_t i) { return static_cast<std::uint8_t>(2 * ((i >> 16) + i) + 1); };
    fill();
    all_reduce(world, data);
    for (std::size_t i = 0; i < count; ++i) {
      if (data[i] != right(i))
        fail("test", std::to_string(right(i)), std::to_string(data[i]), "look at " + std::to_string(i));
    }
    fill();
    const Range own = rank_part(count, static_cast<int>(ranks), world.rank());
    reduce_scatter(world, data, data.subspan(own.begin, own.size));
    for (std::size_t i = own.begin; i < own.begin + own.size; ++i) {
      if (data[i] != right(i))
        fail("test", std::to_string(right(i)), std::to_string(data[i]), "look at " + std::to_string(i));
    }
  });
}
