// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/prepared.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "../support/sanitized.hpp"
#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "support.hpp"

using namespace test;

// Counts what a rank allocates; sanitizers bring an operator new of their own.
#ifndef MESHWISE_TEST_SANITIZED
namespace {
thread_local int allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("nothing is allocated once a call of its kind and size has been made") {
  for (const int ranks : {1, 2, 5}) {
    launch(ranks, [&](Communicator& communicator) {
      for (const std::size_t count : {std::size_t{0}, std::size_t{2}, std::size_t{3000}}) {
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct, Algorithm::ring}) {
          const auto whole = count * static_cast<std::size_t>(ranks);
          std::vector<float> small(count, 1), sums(count), large(whole), part(count);
          CollectiveOptions options;
          options.algorithm = algorithm;
          auto apart = prepare_all_reduce(communicator, small, sums, options);
          auto within = prepare_all_reduce<Max>(communicator, small, options);
          auto scattered = prepare_reduce_scatter(communicator, large, part, options);
          auto gathered = prepare_all_gather(communicator, part, large, options);
          Prepared<void> meeting = prepare_barrier(communicator);
          int before = 0;
          for (int k = 0; k < 6; ++k) {
            if (k == 2) before = allocations;
            (void)apart.run();
            (void)within.run();
            (void)scattered.run();
            (void)gathered.run();
            meeting.run();
            all_reduce(communicator, small, sums, options);
            barrier(communicator);
          }
          require(allocations == before, "allocations");
        }
      }
    });
  }
}
#endif

TEST_CASE("prepared once, run many times on what the buffers hold then") {
  for (const int ranks : {1, 2, 6}) {
    on_both(ranks, [&](Communicator& communicator) {
      std::vector<bf16> in(1000);
      std::vector<bf16> out(1000);
      CollectiveOptions options;
      options.wire = ElementKind::f32;
      auto wired = prepare_all_reduce(communicator, in, out, options);
      auto average = prepare_all_reduce<Average>(communicator, in, out);
      Prepared<void> meeting = prepare_barrier(communicator);
      for (int k = 0; k < 5; ++k) {
        for (bf16& x : in) x = bf16(static_cast<float>(k));
        const std::span<bf16> result = wired.run();
        require(result.data() == out.data() && result[999] == bf16(static_cast<float>(k * ranks)), "run");
        meeting.run();
        Pending<std::span<bf16>> pending = average.start();
        require(pending.wait()[0] == bf16(static_cast<float>(k)), "start");
      }
      require(communicator.traffic().calls == 15, "each run counts");
    });
  }
}

TEST_CASE("a prepared collective meets the blocking one") {
  launch(3, [](Communicator& communicator) {
    std::vector<int> data(4, 1);
    if (communicator.rank() == 1) {
      auto prepared = prepare_all_reduce(communicator, std::move(data));
      require(prepared.run()[3] == 3, "prepared, with a buffer of its own");
    } else {
      all_reduce(communicator, data);
      require(data[3] == 3, "blocking");
    }
  });
}

TEST_CASE("one at a time") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> data(4, 1);
    auto prepared = prepare_all_reduce(communicator, data);
    auto pending = prepared.start();
    refuse([&] { prepared.run(); }, "a prepared collective that is not in flight");
    refuse([&] { (void)prepared.start(); }, "wait for its Pending first");
    auto moved = std::move(prepared);
    pending.wait();
    refuse([&] { prepared.run(); }, "an empty or moved-from object");  // NOLINT: moved-from is specified
    require(moved.run()[0] == 4, "movable");
    Prepared<void> none;
    refuse([&] { none.run(); }, "a prepared collective");
  });
}

TEST_CASE("a Pending keeps its prepared collective alive") {
  launch(2, [](Communicator& communicator) {
    Pending<std::span<int>> pending;
    {
      auto prepared = prepare_all_gather(communicator, std::vector<int>{communicator.rank()}, std::vector<int>(2));
      pending = prepared.start();
    }
    while (!pending.test()) {}
  });
}
