// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/direct.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "../calls.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

constexpr CollectiveOptions direct() {
  CollectiveOptions options;
  options.algorithm = Algorithm::direct;
  return options;
}

/// The same call by the short and by the general way, which a rank takes whose regions do not say that they are
/// contiguous: equal results, traffic and verdicts of completeness, also where ranks take different ways.
struct Outcome {
  calls::Values out;
  Traffic traffic;
  bool finished;

  bool operator==(const Outcome& other) const {
    return out == other.out && traffic.moved == other.traffic.moved && traffic.messages == other.traffic.messages &&
           finished == other.finished;
  }
};

Outcome perform(Communicator& world, std::size_t count, bool in_place, bool averages, bool contiguous) {
  calls::Case one(Operation::all_reduce, world.size(), 0, count, world.rank());
  Call call = one.call();
  call.algorithm = Algorithm::direct;
  call.shape.in_place = in_place;
  if (in_place) call.input = call.output = one.in.data();
  if (averages) call.finishing = reduce_kernel<std::int64_t, Average>();
  call.regions.contiguous = contiguous;
  world.endpoint().traffic() = {};
  const bool finished = world.endpoint().run(call);
  if (in_place) one.out = one.in;
  if (!averages) CHECK(one.out == one.wanted);
  return {one.out, world.endpoint().traffic(), finished};
}

std::string error_of(int ranks, double deadline, void (*program)(Communicator&)) {
  try {
    launch(ranks, LaunchOptions{deadline}, program);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the short way does what the general one does") {
  for (const int ranks : {2, 3, 4, 7}) {
    launch(ranks, [&](Communicator& world) {
      for (const std::size_t count : {1U, 2U, 3U, 5U, 64U, 1000U, 5003U}) {
        for (const bool in_place : {false, true}) {
          for (const bool averages : {false, true}) {
            const Outcome general = perform(world, count, in_place, averages, false);
            CHECK(perform(world, count, in_place, averages, true) == general);
            CHECK(perform(world, count, in_place, averages, world.rank() % 2 == 0) == general);
            CHECK(general.finished == averages);
          }
        }
      }
    });
  }
}

TEST_CASE("other calls of the same rank go on beside it") {
  launch(3, [](Communicator& world) {
    auto other = world.split(0, -world.rank());
    std::vector<int> early(100, world.rank()), late(5000, 1);
    auto pending = start_all_reduce(other, early, direct());
    for (int k = 0; k < 20; ++k) {
      std::fill(late.begin(), late.end(), k);
      all_reduce(world, late, direct());
      CHECK(late == std::vector<int>(5000, 3 * k));
    }
    pending.wait();
    CHECK(early == std::vector<int>(100, 3));
  });
}

TEST_CASE("calls that differ, late and dead ranks, and reductions that throw are reported as ever") {
  const auto program = [](Communicator& world) {
    std::vector<float> data(world.rank() == 1 ? 4000 : 5000, 1.0F);
    all_reduce(world, data, direct());
  };
  std::string text = error_of(3, 20, program);
  CHECK_MESSAGE(text.find("4000 x f32") != std::string::npos, text);
  CHECK_MESSAGE(text.find("5000 x f32") != std::string::npos, text);
  CHECK_MESSAGE(text.find("the count") != std::string::npos, text);

  text = error_of(3, 20, [](Communicator& world) {
    if (world.rank() == 2) return;
    std::vector<float> data(5000, 1.0F);
    all_reduce(world, data, direct());
  });
  CHECK_MESSAGE(text.find("rank 2 to take part in all_reduce") != std::string::npos, text);

  text = error_of(3, 0.1, [](Communicator& world) {
    std::vector<float> data(5000, 1.0F);
    if (world.rank() == 0) {
      const timespec time{1, 0};
      nanosleep(&time, nullptr);
    }
    all_reduce(world, data, direct());
  });
  CHECK_MESSAGE(text.find("rank 0") != std::string::npos, text);
  CHECK_MESSAGE(text.find("within 0.1") != std::string::npos, text);

  text = error_of(3, 20, [](Communicator& world) {
    calls::Case one(Operation::all_reduce, world.size(), 0, 5000, world.rank());
    Call call = one.call();
    call.algorithm = Algorithm::direct;
    call.regions.contiguous = true;
    if (world.rank() == 1) {
      call.kernel = [](std::size_t, const void* const*, int, void* const*, int, bool) {
        throw std::runtime_error("it is full");
      };
    }
    world.endpoint().run(call);
  });
  CHECK_MESSAGE(text.find("rank 1 threw: it is full") != std::string::npos, text);
}
