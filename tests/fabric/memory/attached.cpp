// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/attached.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "../../support/run.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/collective/scatter.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"

using namespace meshwise;

namespace {

using Values = std::span<std::int64_t>;

/// A vector in the library's heap or in ordinary memory.
class Vector {
 public:
  Vector(Communicator& world, std::size_t count, bool registered) : own_(registered ? 0 : count), heap_(source(world)) {
    if (registered) storage_ = heap_.allocate(count * sizeof(std::int64_t));
    all = registered ? Values(reinterpret_cast<std::int64_t*>(storage_.data()), count) : Values(own_);
  }
  Values all;

 private:
  static const MemorySource& source(Communicator& world) { return *world.endpoint().memory(); }
  std::vector<std::int64_t> own_;
  Heap heap_;
  Storage storage_;
};

std::int64_t value(int rank, std::size_t i) { return (rank + 1) * 1'000'003 + static_cast<std::int64_t>(i % 8191); }

void fill(Values values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, i);
}

void expect(bool right, const std::string& what) {
  if (!right) fail("test", what, "something else", "mend it");
}

template <class Wanted>
void compare(Values found, const Wanted& wanted, const std::string& what) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted(i)) expect(false, what + " at " + std::to_string(i));
  }
}

/// All operations that go by one round, with a root in the middle.
void check_all(Communicator& world, std::size_t part, Vector& in, Vector& out) {
  const int me = world.rank(), ranks = world.size(), root = ranks / 2;
  const auto number = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(me);
  const Values whole = in.all.first(part * number + 5), result = out.all.first(whole.size());
  const Values even = in.all.first(part * number), parts = out.all.first(even.size());
  const std::int64_t ones = ranks;
  const auto sum = [&](std::size_t i) {
    return ones * (ones + 1) / 2 * 1'000'003 + ones * static_cast<std::int64_t>(i % 8191);
  };
  fill(in.all, me);
  all_reduce(world, whole, result);
  compare(result, sum, "all_reduce");
  all_reduce(world, whole);
  compare(whole, sum, "all_reduce in place");
  fill(in.all, me);
  fill(out.all, -1);
  reduce(world, whole, result, root);
  if (me == root) compare(result, sum, "reduce");
  std::vector<std::size_t> counts(number, part);
  counts[number - 1] += 5;
  reduce_scatter_v(world, whole, result.first(counts[own]), counts);
  compare(
      result.first(counts[own]), [&](std::size_t i) { return sum(own * part + i); }, "reduce_scatter_v");
  all_gather(world, even.first(part), parts);
  compare(
      parts, [&](std::size_t i) { return value(static_cast<int>(i / part), i % part); }, "all_gather");
  fill(out.all, -1);
  gather(world, even.first(part), parts, root);
  if (me == root) {
    compare(
        parts, [&](std::size_t i) { return value(static_cast<int>(i / part), i % part); }, "gather");
  }
  scatter(world, even, parts.first(part), root);
  compare(
      parts.first(part), [&](std::size_t i) { return value(root, own * part + i); }, "scatter");
  all_to_all(world, even, parts);
  compare(
      parts, [&](std::size_t i) { return value(static_cast<int>(i / part), own * part + i % part); }, "all_to_all");
  broadcast(world, whole, root);
  compare(
      whole, [&](std::size_t i) { return value(root, i); }, "broadcast");
}

}  // namespace

TEST_CASE("every operation on private buffers, and on such among others, gives what the direct one does") {
  for (const int ranks : {2, 3, 4, 6}) {
    for (const std::size_t part : {std::size_t{513}, std::size_t{8192}, std::size_t{40'001}}) {
      launch_processes(ranks, [part](Communicator& world) {
        const auto number = static_cast<std::size_t>(world.size());
        // All private; the first and the last one's input and output; those of one rank.
        for (int kind = 0; kind < 3; ++kind) {
          const bool input = kind == 1 && world.rank() == 0, output = kind == 1 && world.rank() + 1 == world.size();
          const bool both = kind == 2 && world.rank() != 1;
          Vector in(world, part * number + 5, input || both), out(world, part * number + 5, output || both);
          check_all(world, part, in, out);
        }
      });
    }
  }
}

TEST_CASE("it takes the steps of the direct way, and counts what they move") {
  launch_processes(3, [](Communicator& world) {
    auto& endpoint = dynamic_cast<detail::MemoryEndpoint&>(world.endpoint());
    if (!endpoint.job().attaches()) return;
    constexpr std::size_t count = 3 * 10'000;
    const auto steps = [&](bool registered, std::uint64_t& moved) {
      Vector in(world, count, registered), out(world, count, registered);
      fill(in.all, world.rank());
      int points = 0;
      endpoint.job().hook() = {[](void* context, std::uint64_t, std::uint64_t) { ++*static_cast<int*>(context); },
                               &points};
      const std::uint64_t before = world.traffic().moved;
      all_reduce(world, in.all, out.all);
      endpoint.job().hook() = {};
      moved = world.traffic().moved - before;
      return points;
    };
    std::uint64_t direct = 0, asked = 0;
    const int points = steps(true, direct);
    expect(steps(false, asked) == points, "as many steps");
    expect(direct == asked && direct == 2 * 2 * (count / 3) * sizeof(std::int64_t), "as many bytes");
  });
}

TEST_CASE("tiles of all contributors fit half a cache, and hold whole pages") {
  std::size_t before = ~std::size_t{0};
  for (const std::size_t ranks : {1U, 2U, 3U, 8U, 64U, 1000U}) {
    const std::size_t bytes = detail::AttachedMover::tile_bytes(ranks);
    CHECK(bytes % 4096 == 0);
    CHECK(bytes >= 4 * 4096);
    CHECK(bytes <= before);
    before = bytes;
  }
}
