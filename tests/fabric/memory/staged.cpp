// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/staged.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../support/run.hpp"
#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/gather.hpp"
#include "meshwise/collective/reduce_scatter_v.hpp"
#include "meshwise/core/memory.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

LaunchOptions foreign(double deadline = 60) {
  LaunchOptions options;
  options.deadline = deadline;
  options.foreign = true;
  options.settings = Settings{};
  return options;
}

void sleep_milliseconds(long time) {
  const timespec pause{time / 1000, time % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

Call call_of(calls::Case& one) {
  Call call = one.call();
  call.regions.contiguous = true;
  return call;
}

/// Every operation of one size, blocking and started in turns.
void sweep(Communicator& world, std::size_t count, int& turn) {
  for (const Operation operation : calls::operations) {
    const int root = rooted(operation) ? turn % world.size() : 0;
    calls::Case one(operation, world.size(), root, count, world.rank());
    const Call call = call_of(one);
    if (turn++ % 2 == 0) {
      world.endpoint().run(call);
    } else {
      const auto running = world.endpoint().start(call);
      for (int looks = world.rank(); looks > 0 && !running->test(); --looks) {}
      running->wait();
    }
    if (!one.right()) FAIL_CHECK(one.describe());
  }
}

std::string error_of(int ranks, double deadline, void (*program)(Communicator&)) {
  try {
    launch(ranks, foreign(deadline), program);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every operation between buffers that only their owners can address") {
  for (const int ranks : {2, 3, 4, 7}) {
    launch(ranks, foreign(), [](Communicator& world) {
      int turn = 0;
      for (const std::size_t count : {1100U, 4003U, 30001U, 200000U}) sweep(world, count, turn);
      if (!building::sanitized && world.size() < 4) sweep(world, 600011, turn);
    });
  }
}

TEST_CASE("as many bytes cross ranks as in the direct algorithm, and as many are finished") {
  for (const int ranks : {2, 3, 5}) {
    launch(ranks, foreign(), [](Communicator& world) {
      for (const bool in_place : {false, true}) {
        calls::Case one(Operation::all_reduce, world.size(), 0, 40001, world.rank());
        Call call = call_of(one);
        call.shape.in_place = in_place;
        if (in_place) call.output = one.in.data();
        call.finishing = reduce_kernel<std::int64_t, Average>();
        Traffic& traffic = world.endpoint().traffic();
        traffic = {};
        CHECK(world.endpoint().run(call));
        const auto others = static_cast<std::uint64_t>(world.size() - 1);
        CHECK(traffic.messages == 2 * others);
        CHECK(traffic.moved == volume(call, world.rank()));
        const calls::Values& result = in_place ? one.in : one.out;
        for (std::size_t i = 0; i < result.size(); i += 997) CHECK(result[i] == one.wanted[i] / world.size());
      }
    });
  }
}

TEST_CASE("blocks of very different sizes") {
  launch(4, foreign(), [](Communicator& world) {
    for (const std::vector<std::size_t>& counts :
         {std::vector<std::size_t>{0, 100000, 3, 0}, std::vector<std::size_t>{1, 0, 0, 1000000}}) {
      std::vector<std::int32_t> in;
      for (std::size_t block = 0; block < 4; ++block) {
        in.insert(in.end(), counts[block], static_cast<std::int32_t>(block + 10) * (world.rank() + 1));
      }
      const auto rank = static_cast<std::size_t>(world.rank());
      std::vector<std::int32_t> out(counts[rank]);
      reduce_scatter_v(world, in, out, counts);
      CHECK(out == std::vector<std::int32_t>(counts[rank], static_cast<std::int32_t>(rank + 10) * 10));
    }
  });
}

TEST_CASE("vectors beyond the caches are stored around them") {
  if (building::sanitized) return;
  launch(2, foreign(), [](Communicator& world) {
    const std::size_t count = detail::streaming_threshold(2) / 16 + 4099;
    std::vector<float> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<float>(world.rank() + 1) * static_cast<float>(i % 99);
    all_reduce(world, in, out);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += out[i] == 3 * static_cast<float>(i % 99) ? 0U : 1U;
    CHECK(wrong == 0);
  });
}

namespace {

/// Only what is staged, in parts of very few chunks.
class Pieces final : public detail::MemoryStaged {
 public:
  Pieces(std::shared_ptr<detail::MemoryGroup> group, int rank, std::uint64_t most)
      : MemoryStaged(std::move(group), rank, nullptr) {
    most_chunks_ = most;
  }
  Capabilities capabilities() const override { return {true, true, false}; }
  bool run(const Call& call) override {
    enter(call, nullptr, false);
    meet_all();
    begin_staged(call, true);
    advance_staged<true>();
    return conclude_staged();
  }
  Owned<Running> start(const Call&) override { return nullptr; }
  Owned<Endpoint> split(int, int) override { return nullptr; }
  bool advance_aside() override { return false; }
};

}  // namespace

TEST_CASE("a call of more chunks than one operation can count takes several") {
  for (const std::uint64_t most : {1U, 3U}) {
    const int ranks = 3;
    const auto job = std::make_shared<detail::ThreadJob>(ranks);
    const auto group = detail::MemoryGroup::make(job, Topology::flat(ranks), false);
    launch(ranks, [&](Communicator& world) {
      Pieces pieces(group, world.rank(), most);
      for (const Operation operation : calls::operations) {
        calls::Case one(operation, ranks, rooted(operation) ? 1 : 0, 240007, world.rank());
        pieces.run(call_of(one));
        if (!one.right()) FAIL_CHECK(one.describe());
      }
    });
  }
}

TEST_CASE("who hears from nobody runs ahead, and does not overwrite what others have not read") {
  for (const std::size_t count : {1000U, 20000U, 400000U}) {
    launch(3, foreign(), [&](Communicator& world) {
      const int calls = building::sanitized ? 20 : 60;
      std::vector<std::int32_t> data(count);
      for (int k = 0; k < calls; ++k) {
        if (world.rank() == 2 && k % 16 == 0) sleep_milliseconds(2);
        if (world.rank() == 0) std::fill(data.begin(), data.end(), k);
        broadcast(world, data);
        if (data[0] != k || data[count / 2] != k || data[count - 1] != k) FAIL_CHECK(k);
      }
      std::vector<std::int32_t> all(world.rank() == 2 ? 3 * count : 0);
      for (int k = 0; k < calls; ++k) {
        if (world.rank() == 2 && k % 16 == 0) sleep_milliseconds(2);
        std::fill(data.begin(), data.end(), 1000 * world.rank() + k);
        gather(world, data, all, 2);
        for (std::size_t part = 0; world.rank() == 2 && part < 3; ++part) {
          const auto expected = static_cast<std::int32_t>(1000 * part) + k;
          if (all[part * count] != expected || all[(part + 1) * count - 1] != expected) FAIL_CHECK(k);
        }
      }
    });
  }
}

TEST_CASE("what a rank has given can be read when it has left") {
  for (int time = 0; time < 20; ++time) {
    launch(3, foreign(), [](Communicator& world) {
      std::vector<std::int32_t> data(50000, world.rank() == 1 ? 77 : 0);
      if (world.rank() != 1) sleep_milliseconds(1);
      broadcast(world, data, 1);
      CHECK(std::count(data.begin(), data.end(), 77) == 50000);
    });
  }
}

TEST_CASE("staged calls of one group go on beside those of another") {
  launch(3, foreign(), [](Communicator& world) {
    auto other = world.split(0, -world.rank());
    std::vector<int> early(200000, world.rank()), late(50000, 1);
    auto pending = start_all_reduce(other, early);
    for (int k = 0; k < 20; ++k) {
      std::fill(late.begin(), late.end(), k);
      all_reduce(world, late);
      CHECK(late == std::vector<int>(50000, 3 * k));
    }
    pending.wait();
    CHECK(early == std::vector<int>(200000, 3));
  });
}

TEST_CASE("staged calls that differ, late and dead ranks, and reductions that throw are reported as ever") {
  std::string text = error_of(3, 20, [](Communicator& world) {
    std::vector<float> data(world.rank() == 1 ? 4000 : 5000, 1.0F);
    all_reduce(world, data);
  });
  CHECK_MESSAGE(has(text, "4000 x f32"), text);
  CHECK_MESSAGE(has(text, "5000 x f32"), text);
  CHECK_MESSAGE(has(text, "the count"), text);

  // Two roots give and hear from nobody; the next call or their leaving tells.
  for (const bool more : {false, true}) {
    text = error_of(2, 20, more ? [](Communicator& world) {
      std::vector<float> data(5000, 1.0F);
      broadcast(world, data, world.rank());
      barrier(world);
    } : [](Communicator& world) {
      std::vector<float> data(5000, 1.0F);
      broadcast(world, data, world.rank());
    });
    CHECK_MESSAGE(has(text, "the calls differ in the root"), text);
  }

  text = error_of(3, 20, [](Communicator& world) {
    if (world.rank() == 2) return;
    std::vector<float> data(5000, 1.0F);
    all_reduce(world, data);
  });
  CHECK_MESSAGE(has(text, "rank 2 to take part in all_reduce"), text);

  text = error_of(3, 0.1, [](Communicator& world) {
    std::vector<float> data(5000, 1.0F);
    if (world.rank() == 0) sleep_milliseconds(1000);
    all_reduce(world, data);
  });
  CHECK_MESSAGE(has(text, "rank 0"), text);
  CHECK_MESSAGE(has(text, "within 0.1"), text);

  text = error_of(3, 20, [](Communicator& world) {
    calls::Case one(Operation::all_reduce, world.size(), 0, 500000, world.rank());
    Call call = call_of(one);
    if (world.rank() == 1) {
      call.kernel = [](std::size_t, const void* const*, int, void* const*, int, bool) {
        throw std::runtime_error("it is full");
      };
    }
    world.endpoint().run(call);
  });
  CHECK_MESSAGE(has(text, "rank 1 threw: it is full"), text);

  CHECK_THROWS_WITH(launch(4, foreign(20),
                           [](Communicator& world) {
                             std::vector<float> data(2000000, 1.0F);
                             auto pending = start_all_reduce(world, data);
                             if (world.rank() == 3) throw std::runtime_error("in the middle");
                             pending.wait();
                           }),
                    "in the middle");
}

TEST_CASE("a rank whose own buffers all address finds out about the others', however far these are ahead") {
  LaunchOptions options;
  options.deadline = 20;
  launch_processes(3, options, [](Communicator& world) {
    constexpr std::size_t count = 4000;
    Heap heap(*world.endpoint().memory());
    const Storage storage = heap.allocate(count * sizeof(std::int32_t));
    std::vector<std::int32_t> own(count);
    const std::span<std::int32_t> shared(reinterpret_cast<std::int32_t*>(storage.data()), count);
    const std::span<std::int32_t> data = world.rank() == 2 ? shared : std::span<std::int32_t>(own);
    for (int k = 0; k < 120; ++k) {
      // Long enough for more calls than there are entries.
      if (world.rank() == 2 && k % 40 == 0) sleep_milliseconds(20);
      if (world.rank() == 0) std::fill(data.begin(), data.end(), k);
      broadcast(world, data);
      if (data[0] != k || data[count - 1] != k) {
        fail("test", std::to_string(k), std::to_string(data[0]) + " and " + std::to_string(data[count - 1]), "mend it");
      }
    }
  });
}
