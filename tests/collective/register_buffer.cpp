// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/register_buffer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../support/launch.hpp"
#include "meshwise/bootstrap/launch_processes.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/fabric/memory/endpoint.hpp"

using namespace meshwise;

namespace {

/// Pages of the caller's own.
struct Pages {
  explicit Pages(std::size_t count)
      : memory(static_cast<std::int64_t*>(std::aligned_alloc(4096, (count * 8 + 4095) / 4096 * 4096)), &std::free),
        all(memory.get(), count) {}
  std::unique_ptr<std::int64_t, void (*)(void*)> memory;
  std::span<std::int64_t> all;
};

/// Sums a vector; returns how often this rank has published where it is: more often where data goes through windows.
int sum(Communicator& world, std::span<std::int64_t> in, std::span<std::int64_t> out) {
  auto& job = dynamic_cast<detail::MemoryEndpoint&>(world.endpoint()).job();
  int points = 0;
  job.hook() = {[](void* count, std::uint64_t, std::uint64_t) { ++*static_cast<int*>(count); }, &points};
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int64_t>(i) + world.rank();
  all_reduce(world, in, out);
  job.hook() = {};
  const std::int64_t n = world.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != n * static_cast<std::int64_t>(i) + n * (n - 1) / 2) fail("test", "a sum", "another", "mend it");
  }
  return points;
}

void expect(bool condition, const char* what) {
  if (!condition) fail("test", what, "something else", "mend it");
}

}  // namespace

TEST_CASE("among threads there is nothing to register, and nothing changes") {
  launch(2, [](Communicator& world) {
    std::vector<int> data(100, world.rank());
    RegisteredBuffer one = register_buffer(world, data);
    RegisteredBuffer other = std::move(one);
    other = register_buffer(world, std::span(data).first(10));
    all_reduce(world, data);
    CHECK(data == std::vector<int>(100, 1));
    const RegisteredBuffer empty = register_buffer(world, std::span<int>());
  });
}

TEST_CASE("registered buffers of processes go directly, alike or mixed with others, until they are deregistered") {
  // Else those that are not would go by the same steps.
  struct WithoutAttach {
    WithoutAttach() { setenv("MESHWISE_ATTACH", "0", 1); }
    ~WithoutAttach() { unsetenv("MESHWISE_ATTACH"); }
  } const without;
  for (const int ranks : {1, 2, 3}) {
    launch_processes(ranks, [](Communicator& world) {
      constexpr std::size_t count = 50'000;
      Pages in(count), out(count);
      const int direct = 3;
      const auto check = [&](bool registered) {
        const int points = sum(world, in.all, out.all);
        if (world.size() > 1) expect((points == direct) == registered, "registered buffers to be reached directly");
      };
      check(false);
      {
        const RegisteredBuffer first = register_buffer(world, in.all);
        check(false);
        RegisteredBuffer second = register_buffer(world, out.all);
        check(true);
        second.deregister();
        check(false);
        // One rank only.
        RegisteredBuffer third;
        if (world.rank() == 0) third = register_buffer(world, out.all);
        check(world.size() == 1);
      }
      check(false);
    });
  }
}

TEST_CASE("large messages from registered buffers lie where they are") {
  launch_processes(2, [](Communicator& world) {
    Pages data(100'000);
    const RegisteredBuffer registered = register_buffer(world, data.all);
    if (world.rank() == 0) {
      for (std::size_t i = 0; i < data.all.size(); ++i) data.all[i] = static_cast<std::int64_t>(3 * i);
      send(world, data.all, 1);
    } else {
      receive(world, data.all, 0);
      for (std::size_t i = 0; i < data.all.size(); ++i) {
        expect(data.all[i] == static_cast<std::int64_t>(3 * i), "the message");
      }
    }
  });
}

TEST_CASE("what cannot be registered is refused, and stays as it was") {
  launch_processes(1, [](Communicator& world) {
    Pages data(2000);
    const RegisteredBuffer one = register_buffer(world, data.all.first(600));
    try {
      const RegisteredBuffer again = register_buffer(world, data.all.subspan(100));
      expect(false, "a refusal");
    } catch (const Error& error) {
      expect(error.code() == Code::invalid_argument, "invalid_argument");
    }
    expect(sum(world, data.all.first(500), data.all.subspan(500, 500)) > 0, "a call");
  });
}

TEST_CASE("vectors that share pages are registered together, and go in any order") {
  for (const int ranks : {1, 2, 3}) {
    launch_processes(ranks, [](Communicator& world) {
      auto& job = dynamic_cast<detail::MemoryEndpoint&>(world.endpoint()).job();
      std::vector<std::vector<std::int64_t>> vectors;
      for (std::size_t k = 0; k < 6; ++k) vectors.emplace_back(k % 2 == 0 ? 9000 : 1100);
      std::vector<RegisteredBuffer> all;
      for (auto& one : vectors) all.push_back(register_buffer(world, one));
      const auto sums = [&](std::size_t n) {
        for (std::size_t k = 0; k + 2 < vectors.size(); ++k) {
          sum(world, std::span(vectors[k]).first(n), std::span(vectors[k + 2]).first(n));
        }
      };
      for (const std::size_t gone : {2u, 5u, 0u, 4u, 1u, 3u}) {
        sums(1100);
        expect(job.reach(vectors[gone].data(), vectors[gone].size() * 8) != nullptr, "an alias");
        all[gone].deregister();
        expect(job.reach(vectors[gone].data(), 8) == nullptr, "no alias");
      }
      sums(1100);
    });
  }
}
