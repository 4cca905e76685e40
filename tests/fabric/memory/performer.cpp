// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/memory/performer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../../support/sanitized.hpp"
#include "../calls.hpp"
#include "meshwise/fabric/thread/launch.hpp"
#include "meshwise/schedule/catalogue.hpp"

using namespace meshwise;

namespace {

const char* broken(const calls::Case& one, Algorithm algorithm, int lanes, bool messages, std::string& note) {
  note = one.describe() + ", " + algorithm_name(algorithm) + ", " + std::to_string(lanes) + " lanes" +
         (messages ? ", messages" : "");
  return note.c_str();
}

/// All operations with all algorithms that can do them.
void sweep(int ranks, bool messages, const std::vector<std::size_t>& counts, const std::vector<int>& lanes) {
  LaunchOptions options;
  options.messages = messages;
  options.settings = Settings{};
  launch(ranks, options, [&](Communicator& communicator) {
    const Catalogue catalogue(Topology::flat(ranks));
    std::string note;
    for (const Operation operation : calls::operations) {
      for (const std::size_t count : counts) {
        for (const int lane_count : lanes) {
          for (int k = 1; k < algorithm_count; ++k) {
            const auto algorithm = static_cast<Algorithm>(k);
            const int root = rooted(operation) ? (k + lane_count) % ranks : 0;
            calls::Case one(operation, ranks, root, count, communicator.rank());
            if (!catalogue.find(algorithm).supports(one.shape)) continue;
            Call call = one.call();
            call.algorithm = algorithm;
            call.lanes = lane_count;
            communicator.endpoint().run(call);
            if (!one.right()) FAIL_CHECK(broken(one, algorithm, lane_count, messages, note));
          }
        }
      }
    }
  });
}

}  // namespace

TEST_CASE("every operation, algorithm and number of lanes, by memory") {
  for (int ranks = 1; ranks <= (building::sanitized ? 5 : 9); ++ranks) {
    sweep(ranks, false, {0, 1, 5, 64, 1000}, {1, 2, 5});
  }
}

TEST_CASE("every operation, algorithm and number of lanes, by messages") {
  for (const int ranks : {1, 2, 3, 5, 8}) sweep(ranks, true, {0, 1, 5, 64, 1000}, {1, 3});
}

namespace {

Region whole_vector(const void*, const Shape&, Buffer, int, int slot) {
  return slot == 0 ? Region{0, 4, 4, 1} : Region{};
}

/// Sums, then what finishes the sum.
void finish(std::size_t count, const void* const* from, int sources, void* const* to, int destinations, bool) {
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t sum = 0;
    for (int s = 0; s < sources; ++s) sum += static_cast<const std::int64_t*>(from[s])[i];
    for (int d = 0; d < destinations; ++d) static_cast<std::int64_t*>(to[d])[i] = sum * 100;
  }
}

}  // namespace

TEST_CASE("a reduction is finished by its moves exactly if it says so") {
  for (const bool messages : {false, true}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
        LaunchOptions options;
        options.messages = messages;
        launch(ranks, options, [&](Communicator& communicator) {
          calls::Values in(4, 1);
          calls::Values out(4);
          Call call;
          call.verb = "mean";
          call.shape.ranks = ranks;
          call.element = ElementKind::i64;
          call.element_size = 8;
          call.count = 4;
          call.algorithm = algorithm;
          call.kernel = reduce_kernel<std::int64_t, Sum>();
          call.input = in.data();
          call.output = out.data();
          call.regions.locate = &whole_vector;
          CHECK(!communicator.endpoint().run(call));
          CHECK(out[3] == ranks);
          call.finishing = &finish;
          const bool finished = communicator.endpoint().run(call);
          CHECK(finished == (ranks > 1 && (algorithm == Algorithm::direct || ranks == 2)));
          CHECK(out[3] == (finished ? 100 : 1) * ranks);
        });
      }
    }
  }
}

namespace {

/// What one rank knows: how much it sends to and receives from each, both in rank order.
struct Own {
  std::array<std::size_t, 9> sends{};
  std::array<std::size_t, 9> receives{};
};

Region own_region(const void* context, const Shape&, Buffer buffer, int, int slot) {
  const Own& own = *static_cast<const Own*>(context);
  const auto& sizes = buffer == Buffer::input ? own.sends : own.receives;
  std::size_t offset = 0;
  for (int k = 0; k < slot; ++k) offset += sizes[static_cast<std::size_t>(k)];
  const std::size_t size = sizes[static_cast<std::size_t>(slot)];
  return Region{offset, size, size, 1};
}

std::size_t sent(int from, int to) {
  return static_cast<std::size_t>((from * 5 + to * 3) % 7) * (from == 2 ? 0U : 11U);
}

/// wrong: how many elements more the last rank expects from rank 0.
void exchange_own_counts(Communicator& communicator, std::size_t wrong, Algorithm algorithm = Algorithm::automatic) {
  const int ranks = communicator.size();
  const int rank = communicator.rank();
  Own own;
  std::size_t leaving = 0;
  std::size_t arriving = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    leaving += own.sends[static_cast<std::size_t>(peer)] = sent(rank, peer);
    arriving += own.receives[static_cast<std::size_t>(peer)] =
        sent(peer, rank) + (peer == 0 && rank == ranks - 1 ? wrong : 0);
  }
  std::vector<int> in(leaving, rank);
  std::vector<int> out(arriving, -1);
  Call call;
  call.verb = "all_to_all_v";
  call.shape = Shape{Operation::all_to_all, ranks, 0, false};
  call.element = ElementKind::i32;
  call.element_size = 4;
  call.count = 1;
  call.algorithm = algorithm;
  call.input = in.data();
  call.output = out.data();
  call.regions = Regions{&own_region, &own, sizeof(own)};
  communicator.endpoint().run(call);
  std::size_t at = 0;
  bool right = true;
  for (int peer = 0; peer < ranks; ++peer) {
    for (std::size_t i = 0; i < own.receives[static_cast<std::size_t>(peer)]; ++i) right = right && out[at++] == peer;
  }
  CHECK(right);
}

}  // namespace

TEST_CASE("ranks that know their own buffers only") {
  for (const bool messages : {false, true}) {
    LaunchOptions options;
    options.messages = messages;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      launch(ranks, options, [](Communicator& communicator) {
        for (int k = 0; k < 3; ++k) exchange_own_counts(communicator, 0);
      });
    }
  }
}

TEST_CASE("what one rank sends and another expects must be the same") {
  for (const bool messages : {false, true}) {
    for (const int ranks : {2, 5}) {
      LaunchOptions options;
      options.messages = messages;
      std::array<Code, 5> codes{};
      launch(ranks, options, [&](Communicator& communicator) {
        try {
          exchange_own_counts(communicator, 1);
          exchange_own_counts(communicator, 0);
        } catch (const Error& error) {
          codes[static_cast<std::size_t>(communicator.rank())] = error.code();
        }
      });
      for (int rank = 0; rank < ranks; ++rank) CHECK(codes[static_cast<std::size_t>(rank)] == Code::mismatch);
    }
  }
}

TEST_CASE("a caller's own generator is refused where it cannot do the work") {
  launch(3, [](Communicator& communicator) {
    calls::Case one(Operation::gather, 3, 0, 9, communicator.rank());
    Call call = one.call("gather");
    call.algorithm = Algorithm::custom;
    CHECK_THROWS_WITH_AS(communicator.endpoint().run(call),
                         doctest::Contains("expected an algorithm for gather in place on 3 ranks, found none"), Error);
    call.generator = AnyGenerator::of<Ring>();
    CHECK_THROWS_WITH_AS(communicator.endpoint().run(call), doctest::Contains("on 3 ranks, found ring"), Error);
    calls::Case sum(Operation::all_reduce, 3, 0, 9, communicator.rank());
    Call ordered = sum.call("all_reduce");
    ordered.algorithm = Algorithm::custom;
    ordered.generator = AnyGenerator::of<Ring>();
    ordered.reproducible = true;
    CHECK_THROWS_WITH_AS(communicator.endpoint().run(ordered),
                         doctest::Contains("since the call is reproducible, found ring"), Error);
    ordered.reproducible = false;
    ordered.commutative = false;
    CHECK_THROWS_WITH_AS(communicator.endpoint().run(ordered), doctest::Contains("does not commute, found ring"),
                         Error);
    ordered.generator = AnyGenerator::of<Direct>();
    communicator.endpoint().run(ordered);
    CHECK(sum.right());
    // Nothing was sent: the communicator is as good as before.
    call.generator = AnyGenerator::of<Direct>();
    communicator.endpoint().run(call);
    CHECK(one.right());
  });
}

TEST_CASE("messages: all pieces of a pair in one round and lane travel together") {
  LaunchOptions options;
  options.messages = true;
  options.settings = Settings{};
  launch(4, options, [](Communicator& communicator) {
    const Catalogue catalogue(Topology::flat(4));
    for (int k = 1; k < algorithm_count; ++k) {
      const auto algorithm = static_cast<Algorithm>(k);
      calls::Case one(Operation::all_reduce, 4, 0, 4000, communicator.rank());
      const AnyGenerator generator = catalogue.find(algorithm);
      if (!generator.supports(one.shape)) continue;
      for (const int lanes : {1, 3}) {
        Call call = one.call();
        call.algorithm = algorithm;
        call.lanes = lanes;
        const Traffic before = communicator.traffic();
        communicator.endpoint().run(call);
        const std::uint64_t messages = (communicator.traffic() - before).messages;
        // A round becomes at most two steps, each with at most one message from each of the others.
        CHECK(messages <= static_cast<std::uint64_t>(2 * 3 * generator.rounds(one.shape) * lanes));
        if (algorithm == Algorithm::recursive_doubling) CHECK(messages == static_cast<std::uint64_t>(2 * lanes));
      }
    }
  });
}

namespace {

/// Everybody reads everybody, but for the last rank.
struct Forgetful {
  static constexpr const char* name = "forgetful";
  static constexpr bool supports(const Shape& shape) { return shape.operation == Operation::all_reduce; }
  static constexpr int rounds(const Shape&) { return 1; }
  static constexpr int scratch_slots(const Shape&) { return 0; }
  static constexpr std::vector<Move> by(const Shape& shape, int rank, int) {
    Move move;
    move.by = rank;
    for (int peer = 0; peer < shape.ranks - 1; ++peer) move.from.push_back({peer, Buffer::input, 0, shape.ranks});
    move.to.push_back({rank, Buffer::output, 0, shape.ranks});
    return {move};
  }
  static constexpr std::vector<int> partners(const Shape& shape, int rank, int) {
    return detail::others(shape.ranks, rank);
  }
};

}  // namespace

TEST_CASE("a caller's generator that is wrong is refused on every rank before anything moves") {
  for (const bool messages : {false, true}) {
    launch(3, LaunchOptions{20, messages}, [](Communicator& communicator) {
      calls::Case one(Operation::all_reduce, 3, 0, 5000, communicator.rank());
      Call call = one.call();
      call.algorithm = Algorithm::custom;
      call.generator = AnyGenerator::of<Forgetful>();
      for (int twice = 0; twice < 2; ++twice) {
        std::string text;
        try {
          communicator.endpoint().run(call);
        } catch (const Error& error) {
          text = error.what();
          CHECK(error.code() == Code::invalid_argument);
        }
        CHECK_MESSAGE(text.find("without the contribution of some rank") != std::string::npos, text);
      }
      communicator.endpoint().run(one.call());
      CHECK(one.right());
    });
  }
}
