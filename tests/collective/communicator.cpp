// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/communicator.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/all_to_all.hpp"
#include "meshwise/collective/barrier.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/collective/send_receive.hpp"
#include "meshwise/core/deadline.hpp"
#include "support.hpp"

using namespace test;

namespace {

int sum_of_ranks(Communicator& group, int contribution) {
  int data = contribution;
  all_reduce(group, std::span(&data, 1));
  return data;
}

Setup patience(double seconds) {
  Setup options;
  options.deadline = seconds;
  return options;
}

/// Every rank must get a mismatch that names both calls and both ranks, no later than at its next call and long before
/// the deadline.
template <class F>
void mismatch(int ranks, const char* one, const char* other, const char* difference, F program) {
  for (const bool messages : both) {
    Setup options;
    options.deadline = 60;
    options.messages = messages;
    const std::int64_t start = monotonic_nanoseconds();
    const Outcome result = outcome(ranks, options, [&](Communicator& world) {
      program(world);
      barrier(world);  // whoever has nothing to do with the ranks that differ hears of it here
    });
    CHECK(monotonic_nanoseconds() - start < 30'000'000'000);
    for (std::size_t rank = 0; rank < result.text.size(); ++rank) {
      CAPTURE(messages);
      CAPTURE(result.text[rank]);
      CHECK(result.code[rank] == Code::mismatch);
      CHECK(contains(result.text[rank], one));
      CHECK(contains(result.text[rank], other));
      CHECK(contains(result.text[rank], difference));
      CHECK(contains(result.text[rank], "rank 0: "));
      if (ranks == 2) CHECK(contains(result.text[rank], "rank 1: "));
    }
  }
}

}  // namespace

TEST_CASE("split forms groups by colour, ordered by key, then by rank") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& world) {
      const int rank = world.rank();
      Communicator thirds = world.split(rank % 3);
      require(thirds.rank() == rank / 3 && thirds.size() == (ranks - rank % 3 + 2) / 3, "by rank");
      Communicator reversed = world.split(7, -rank);
      require(reversed.rank() == ranks - 1 - rank && reversed.size() == ranks, "by key");
      Communicator few = world.split(rank == 0 ? 5 : -1);
      require(few.empty() == (rank != 0), "a negative colour");
      if (!few.empty()) require(few.size() == 1 && few.rank() == 0 && sum_of_ranks(few, 3) == 3, "alone");

      int wanted = 0;
      for (int k = rank % 3; k < ranks; k += 3) wanted += k;
      require(sum_of_ranks(thirds, rank) == wanted, "sum over a third");
      Communicator pairs = thirds.split(thirds.rank() / 2);
      const int low = rank % 3 + thirds.rank() / 2 * 6;
      require(sum_of_ranks(pairs, rank) == low + (low + 3 < ranks ? low + 3 : 0), "nested");
      // Groups that overlap are used in turn.
      for (int k = 0; k < 20; ++k) {
        require(sum_of_ranks(reversed, 1) == ranks, "reversed");
        require(sum_of_ranks(thirds, 1) == thirds.size(), "thirds");
        require(sum_of_ranks(world, 1) == ranks, "world");
      }
    });
  }
}

TEST_CASE("a group inherits name and deadline, and counts for itself") {
  Setup options;
  options.deadline = 12;
  options.name = "world";
  launch(2, options, [](Communicator& world) {
    Communicator half = world.split(0);
    require(half.name() == "world" && half.deadline() == 12, "inherited");
    require(world.traffic() == Traffic{}, "a split is not counted");
    half.set_name("tp");
    half.set_deadline(0);
    require(world.name() == "world" && world.deadline() == 12, "independent");
    sum_of_ranks(half, 1);
    require(half.traffic().calls == 1 && world.traffic().calls == 0, "traffic");
    Communicator moved = std::move(half);
    require(half.empty() && moved.size() == 2 && half.size() == 0 && half.rank() == -1, "moved");  // NOLINT
    for (const double seconds : {-1.0, std::nan("")}) {
      try {
        moved.set_deadline(seconds);
        require(false, "not refused");
      } catch (const Error& error) {
        require(contains(error.what(), "seconds >= 0"), error.what());
      }
    }
  });
}

TEST_CASE("groups outlive the communicator that they were split from") {
  launch(4, [](Communicator& world) {
    Communicator half = world.split(world.rank() / 2);
    Communicator quarter = half.split(0);
    half = Communicator();
    for (int k = 0; k < 100; ++k) require(sum_of_ranks(quarter, 1) == 2, "sum");
  });
}

TEST_CASE("different calls are an error on all ranks that names both") {
  mismatch(2, "all_reduce", "all_gather", "the operation", [](Communicator& world) {
    std::vector<float> data(4);
    if (world.rank() == 0) return all_reduce(world, data);
    all_gather(world, data);
  });
  mismatch(2, "1000 x f32", "999 x f32", "the count", [](Communicator& world) {
    std::vector<float> data(world.rank() == 0 ? 1000 : 999);
    all_reduce(world, data);
  });
  mismatch(2, "16 x f32", "16 x i32", "the element type", [](Communicator& world) {
    std::vector<float> one(16);
    std::vector<int> other(16);
    if (world.rank() == 0) return all_reduce(world, one);
    all_reduce(world, other);
  });
  mismatch(2, "sum", "max", "the reduction", [](Communicator& world) {
    std::vector<float> data(16);
    if (world.rank() == 0) return all_reduce(world, data);
    all_reduce<Max>(world, data);
  });
  mismatch(2, "root 0", "root 1", "the root", [](Communicator& world) {
    std::vector<float> data(16);
    broadcast(world, data, world.rank());
  });
  mismatch(2, "sum, in place)", "sum)", "in place or not", [](Communicator& world) {
    std::vector<float> data(16);
    std::vector<float> out(16);
    if (world.rank() == 0) return all_reduce(world, data);
    all_reduce(world, data, out);
  });
  mismatch(2, "sum, in place, direct)", "in place, ring)", "the algorithm", [](Communicator& world) {
    std::vector<float> data(16);
    all_reduce(world, data, CollectiveOptions{world.rank() == 0 ? Algorithm::direct : Algorithm::ring, -1});
  });
  // On the other ranks, which agree with one of the two.
  for (int ranks = 3; ranks <= 6; ++ranks) {
    for (const Algorithm algorithm : algorithms) {
      mismatch(ranks, "broadcast", "reduce_scatter", "the operation", [&](Communicator& world) {
        std::vector<float> data(100);
        const CollectiveOptions options{algorithm, -1};
        for (int k = 0; k < 3; ++k) all_reduce(world, data, options);
        if (world.rank() == 0) {
          reduce_scatter(world, data, options);
        } else {
          broadcast(world, data, 0, options);
        }
      });
    }
  }
}

TEST_CASE("an error is sticky, and leaves other groups alone") {
  launch(2, [](Communicator& world) {
    Communicator other = world.split(0);
    std::vector<float> data(static_cast<std::size_t>(10 + world.rank()));
    std::string first;
    for (int k = 0; k < 3; ++k) {
      try {
        if (k == 0) all_reduce(other, data);
        if (k == 1) barrier(other);
        if (k == 2) send(other, data, 0);
        require(false, "no error");
      } catch (const Error& error) {
        require(error.code() == Code::mismatch && contains(error.what(), "11 x f32"), error.what());
      }
    }
    require(sum_of_ranks(world, 1) == 2, "the world is well");
  });
}

TEST_CASE("every wait ends at its deadline and says who is missing") {
  const Outcome result = outcome(3, patience(0.1), [](Communicator& world) {
    world.set_name("dp");
    if (world.rank() == 2) {
      while (true) {  // busy elsewhere until the others have given up
        try {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          barrier(world);
        } catch (const Error& error) {
          require(error.code() == Code::timed_out, error.what());
          return;
        }
      }
    }
    barrier(world);
    barrier(world);
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(result.code[rank] == Code::timed_out);
    CHECK(contains(result.text[rank], "axis dp"));
    CHECK(contains(result.text[rank], "still waiting for rank 2, which has made no collective call here yet"));
    CHECK(contains(result.text[rank], "within 0.1"));
  }
  // A deadline of the call itself.
  const Outcome single = outcome(2, Setup{}, [](Communicator& world) {
    if (world.rank() == 0) {
      barrier(world, CollectiveOptions{Algorithm::automatic, 0.05});
    } else {
      int data = 0;
      receive(world, std::span(&data, 1), 0);
    }
  });
  CHECK(single.code[0] == Code::timed_out);
  CHECK(single.code[1] == Code::timed_out);
}

TEST_CASE("a rank that has ended is noticed at once") {
  for (const bool messages : both) {
    Setup options;
    options.messages = messages;
    const Outcome result = outcome(4, options, [](Communicator& world) {
      std::vector<float> data(100);
      all_reduce(world, data);
      if (world.rank() == 1) return;
      all_reduce(world, data);
    });
    CHECK(result.text[1].empty());
    for (const std::size_t rank : {0U, 2U, 3U}) {
      CHECK(result.code[rank] == Code::peer_left);
      CHECK(contains(result.text[rank], "expected rank 1 to take part in all_reduce(100 x f32, sum, in place)"));
    }
  }
}

TEST_CASE("abort ends waits from any thread") {
  std::atomic<Communicator*> target{nullptr};
  std::thread outside([&target] {
    while (target.load() == nullptr) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    target.load()->abort("enough");
  });
  std::atomic<int> left{0};
  const Outcome result = outcome(3, Setup{}, [&](Communicator& world) {
    const auto stay = [&] {  // the communicator must live until abort has returned
      left.fetch_add(1);
      while (left.load() < 3) std::this_thread::yield();
      if (world.rank() == 2) outside.join();
    };
    try {
      if (world.rank() == 2) {
        target.store(&world);
        int data = 0;
        receive(world, std::span(&data, 1), 0);
      } else {
        barrier(world);
      }
    } catch (...) {
      stay();
      throw;
    }
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(result.code[rank] == Code::aborted);
    CHECK(contains(result.text[rank], "rank 2 called abort: enough"));
  }
}

TEST_CASE("after an error nobody touches the buffers of a rank that has thrown") {
  // The buffers die during unwinding, while others are in the middle of large moves: for the address sanitizer.
  for (int k = 0; k < 10; ++k) {
    const Outcome result = outcome(4, Setup{}, [k](Communicator& world) {
      std::vector<float> data(300000 + static_cast<std::size_t>(world.rank() == k % 4 ? k : 0));
      for (int i = 0; i < 3; ++i) {
        if (i == 2 && world.rank() == (k + 1) % 4) world.abort("now");
        std::vector<float> out(data.size());
        reduce_scatter(world, data);
        all_to_all(world, std::span(data).first(300000), std::span(out).first(300000));
      }
    });
    for (const std::string& text : result.text) CHECK(!text.empty());
  }
}

TEST_CASE("a long mixture of small operations") {
  const int rounds = full() ? 50000 : 5000;
  for (const int ranks : {2, 4}) {
    launch(ranks, [&](Communicator& world) {
      Communicator sub = world.split(world.rank() % 2);
      Draw draw(17);
      const auto p = static_cast<std::size_t>(ranks);
      std::vector<std::int32_t> in(16 * p);
      std::vector<std::int32_t> out(16 * p);
      for (int k = 0; k < rounds; ++k) {
        const std::size_t size = draw(17);
        const CollectiveOptions options{algorithms[draw(2)], -1};
        const std::uint64_t kind = draw(7);
        const int root = static_cast<int>(draw(p));
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = world.rank() + static_cast<int>(i) + k;
        const auto data = std::span(in).first(size);
        const auto result = std::span(out).first(size);
        const int sum = ranks * (ranks - 1) / 2;
        if (kind == 0) {
          all_reduce(world, data, result, options);
          for (std::size_t i = 0; i < size; ++i) require(result[i] == sum + ranks * (static_cast<int>(i) + k), "sum");
        } else if (kind == 1) {
          broadcast(world, data, root, options);
          for (std::size_t i = 0; i < size; ++i) require(data[i] == root + static_cast<int>(i) + k, "broadcast");
        } else if (kind == 2) {
          all_gather(world, std::span(in).first(size), std::span(out).first(size * p), options);
          for (std::size_t i = 0; i < size * p; ++i) {
            require(out[i] == static_cast<int>(i / size + i % size) + k, "all_gather");
          }
        } else if (kind == 3) {
          const auto block = reduce_scatter(world, std::span(in).first(size * p), options);
          const int first = static_cast<int>(size) * world.rank() + k;
          for (std::size_t i = 0; i < size; ++i) {
            require(block[i] == sum + ranks * (static_cast<int>(i) + first), "reduce_scatter");
          }
        } else if (kind == 4) {
          all_to_all(world, std::span(in).first(size * p), std::span(out).first(size * p), options);
          for (std::size_t i = 0; i < size * p; ++i) {
            const int from = static_cast<int>(i / size);
            const int item = static_cast<int>(i % size) + static_cast<int>(size) * world.rank();
            require(out[i] == from + item + k, "all_to_all");
          }
        } else if (kind == 5) {
          exchange(world, data, (world.rank() + 1) % ranks, result, (world.rank() + ranks - 1) % ranks);
          for (std::size_t i = 0; i < size; ++i) {
            require(result[i] == (world.rank() + ranks - 1) % ranks + static_cast<int>(i) + k, "exchange");
          }
        } else {
          require(sum_of_ranks(sub, 1) == sub.size(), "sub");
        }
      }
    });
  }
}

TEST_CASE("strided regions are moved where they lie") {
  // A matrix of `rows` x (ranks * width): the all_gather along the columns, whose blocks are columns of the result.
  struct Matrix {
    std::size_t rows, width;
  };
  for (const int ranks : {1, 2, 3, 5}) {
    for (const Algorithm algorithm : algorithms) {
      on_both(ranks, [&](Communicator& world) {
        const Matrix shape{7, 5};
        const std::size_t columns = shape.width * static_cast<std::size_t>(ranks);
        Guarded<int> in(shape.rows * shape.width);
        Guarded<int> out(shape.rows * columns);
        for (std::size_t i = 0; i < in.span().size(); ++i) {
          in.data()[i] = static_cast<int>(i) + 1000 * world.rank();
        }
        Call call;
        call.verb = "gather_columns";
        call.shape.operation = Operation::all_gather;
        call.element = ElementKind::i32;
        call.element_size = 4;
        call.count = shape.rows * columns;
        call.algorithm = algorithm;
        call.input = in.data();
        call.output = out.data();
        call.regions.context = &shape;
        call.regions.locate = [](const void* context, const Shape& s, Buffer buffer, int, int slot) {
          const auto& m = *static_cast<const Matrix*>(context);
          if (buffer == Buffer::input) return Region{0, m.rows * m.width, 0, 1};
          return Region{static_cast<std::size_t>(slot) * m.width, m.width, m.width * static_cast<std::size_t>(s.ranks),
                        m.rows};
        };
        world.run(call);
        in.check("input");
        out.check("output");
        for (std::size_t row = 0; row < shape.rows; ++row) {
          for (std::size_t column = 0; column < columns; ++column) {
            const std::size_t item = row * shape.width + column % shape.width;
            const int wanted = static_cast<int>(item) + 1000 * static_cast<int>(column / shape.width);
            require(out.data()[row * columns + column] == wanted, "element");
          }
        }
      });
    }
  }
}

TEST_CASE("regions that disagree are an error, not an overrun") {
  for (const bool messages : both) {
    Setup options;
    options.messages = messages;
    const Outcome result = outcome(2, options, [](Communicator& world) {
      std::vector<int> in(10);
      std::vector<int> out(20);
      Call call;
      call.shape.operation = Operation::all_gather;
      call.element_size = 4;
      call.count = 20;
      call.input = in.data();
      call.output = out.data();
      call.regions.locate = [](const void*, const Shape&, Buffer buffer, int, int) {
        return buffer == Buffer::input ? Region{0, 10, 0, 1} : Region{0, 9, 0, 1};
      };
      world.run(call);
    });
    CHECK(contains(result.text[0], "10"));
    CHECK(contains(result.text[0], "9"));
    CHECK(!result.text[1].empty());
  }
}

TEST_CASE("explain says what runs, and why") {
  launch(3, [](Communicator& communicator) {
    const auto says = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
    const std::string small = communicator.explain(Operation::all_reduce, 64);
    CHECK_MESSAGE(says(small, "one rendezvous through windows"), small);
    const std::string large = communicator.explain(Operation::all_reduce, 1 << 20);
    CHECK_MESSAGE(says(large, "chosen: direct, 1 lane"), large);
    CHECK_MESSAGE(says(large, "halving_doubling"), large);
    CHECK_FALSE(says(large, "windows"));
    CollectiveOptions ring;
    ring.algorithm = Algorithm::ring;
    CHECK(says(communicator.explain(Operation::broadcast, 8, ring), "chosen: ring"));
    ring.reproducible = true;
    CHECK_THROWS_AS(static_cast<void>(communicator.explain(Operation::all_reduce, 8, ring)), Error);
  });
}
