// SPDX-License-Identifier: Apache-2.0
#include "meshwise/train/loader.hpp"

#include <doctest/doctest.h>

#include "../parallel/support.hpp"

namespace {

using namespace test;

using Ids = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<batch, dp>>>;
using Parts = Tensor<std::int32_t, Dims<batch, seq>, Layout<Grid, Shard<batch, dp>, Shard<seq, Zigzag<tp>>>>;
using Behind = Tensor<double, Dims<seq, batch>, Layout<Grid, Shard<batch, dp>, Shard<seq, tp>>>;

template <class T, class F>
concept can_read = requires(const GlobalBatch& b, const Grid& mesh, const F& f) {
  b.read<T>(mesh, {1, 1}, f);
};
using ByIndex = int (*)(std::uint64_t, const Index<Dims<batch, seq>>&);
static_assert(can_read<Ids, ByIndex>);
static_assert(!can_read<Ids, int (*)(std::uint64_t)>);
static_assert(!can_read<Tensor<int, Dims<batch, seq>, Layout<Grid, Partial<dp>>>, ByIndex>);
static_assert(
    !can_read<Tensor<int, Dims<hidden, seq>, Layout<Grid>>, int (*)(std::uint64_t, const Index<Dims<hidden, seq>>&)>);

std::vector<std::uint64_t> samples_of(const GlobalBatch& b) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < b.size(); ++i) result.push_back(b[i]);
  return result;
}

}  // namespace

TEST_CASE("loader: every sample once in an epoch, the last batch is what is left or left out") {
  for (const std::uint64_t samples : {1U, 2U, 7U, 8U, 64U, 100U}) {
    for (const std::size_t size : {1U, 2U, 3U, 8U, 200U}) {
      for (const bool keep : {true, false}) {
        Loader loader(samples, size, {.keep_rest = keep});
        const std::uint64_t steps = loader.steps_per_epoch();
        CHECK(steps == (keep ? (samples + size - 1) / size : samples / size));
        if (steps == 0) {
          CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("one batch"), Error);
          continue;
        }
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          std::vector<int> seen(samples);
          std::uint64_t count = 0;
          for (std::uint64_t step = 0; step < steps; ++step) {
            const GlobalBatch b = loader.next();
            CHECK(b.epoch() == epoch);
            CHECK((b.size() == size || (keep && step + 1 == steps && b.size() == samples % size)));
            for (const std::uint64_t sample : samples_of(b)) ++seen[sample];
            count += b.size();
          }
          CHECK(count == (keep ? samples : steps * size));
          for (const int n : seen) CHECK(n <= 1);
        }
      }
    }
  }
}

TEST_CASE("loader: epochs have orders of their own, without shuffling all have that of the samples") {
  Loader shuffled(100, 100), plain(10, 4, {.shuffle = false});
  const auto first = samples_of(shuffled.next()), second = samples_of(shuffled.next());
  CHECK(first != second);
  CHECK(samples_of(Loader(100, 100).next()) == first);
  CHECK(samples_of(Loader(100, 100, {.seed = 2}).next()) != first);
  for (int epoch = 0; epoch < 2; ++epoch) {
    CHECK(samples_of(plain.next()) == std::vector<std::uint64_t>{0, 1, 2, 3});
    CHECK(samples_of(plain.next()) == std::vector<std::uint64_t>{4, 5, 6, 7});
    CHECK(samples_of(plain.next()) == std::vector<std::uint64_t>{8, 9});
  }
}

TEST_CASE("loader: goes on at any step as if it had read those before") {
  Loader whole(23, 4);
  std::vector<std::vector<std::uint64_t>> batches;
  for (int step = 0; step < 20; ++step) batches.push_back(samples_of(whole.next()));
  CHECK(whole.step() == 20);
  for (std::uint64_t step = 0; step < 20; ++step) {
    Loader again(23, 4, {.step = step});
    CHECK(again.step() == step);
    for (std::uint64_t s = step; s < 20; ++s) REQUIRE(samples_of(again.next()) == batches[s]);
    again.seek(step);
    CHECK(samples_of(again.next()) == batches[step]);
  }
}

TEST_CASE("loader: the global batch does not depend on the ranks, whatever they are and hold") {
  const std::size_t length = 5;
  const auto token = [](std::uint64_t sample, std::size_t position) { return sample * 100 + position; };
  for (const Ranks ranks : {Ranks{1, 1}, Ranks{2, 3}, Ranks{3, 2}, Ranks{8, 1}, Ranks{1, 9}}) {
    on_grid(ranks, [&](const Grid& mesh) {
      Loader loader(11, 4);
      for (int step = 0; step < 7; ++step) {  // batches of 4, 4, 3, which 8 ranks cannot all have a part of
        const GlobalBatch b = loader.next();
        std::vector<double> tokens, labels, turned(b.size() * length);
        for (std::size_t i = 0; i < b.size(); ++i) {
          for (std::size_t p = 0; p < length; ++p) {
            tokens.push_back(static_cast<double>(token(b[i], p)));
            labels.push_back(static_cast<double>(token(b[i], p + 1)));
            turned[p * b.size() + i] = tokens.back();
          }
        }
        const auto read = [&](std::uint64_t sample, const auto& i) {
          return static_cast<std::int32_t>(token(sample, i.template position<seq>()));
        };
        const auto next = [&](std::uint64_t sample, const auto& i) {
          return static_cast<std::int32_t>(token(sample, i.template position<seq>() + 1));
        };
        require(whole(b.read<Ids>(mesh, {b.size(), length}, read)) == tokens, "tokens");
        require(whole(b.read<Parts>(mesh, {b.size(), length}, read)) == tokens, "whose sequence is cut");
        require(whole(b.read<Parts>(mesh, {b.size(), length}, next)) == labels, "labels, shifted before they are cut");
        require(whole(b.read<Behind>(mesh, {length, b.size()}, read)) == turned, "samples in another dim");
        require(b.read<Ids>(mesh, {b.size(), 0}, read).size() == 0, "nothing");
      }
    });
  }
}

TEST_CASE("loader: a rank reads its own samples only") {
  on_grid({3, 1}, [](const Grid& mesh) {
    Loader loader(100, 7);
    const GlobalBatch b = loader.next();
    std::vector<std::uint64_t> read;
    const auto x = b.read<Ids>(mesh, {b.size(), 2}, [&](std::uint64_t sample, const auto&) {
      read.push_back(sample);
      return 0;
    });
    std::vector<std::uint64_t> expected;
    const Range own = x.range<batch>();
    for (std::size_t i = own.begin; i < own.begin + own.size; ++i) expected.insert(expected.end(), 2, b[i]);
    require(read == expected, "in the order of its part");
  });
}

TEST_CASE("loader: errors name both values") {
  CHECK_THROWS_WITH_AS(Loader(5, 0), doctest::Contains("at least one sample"), Error);
  Loader none(0, 4);
  CHECK_THROWS_WITH_AS(static_cast<void>(none.next()), doctest::Contains("one sample"), Error);
  Loader loader(5, 4);
  static_cast<void>(loader.next());
  const GlobalBatch last = loader.next();
  CHECK_THROWS_WITH_AS(static_cast<void>(last[1]), doctest::Contains("below 1"), Error);
  std::string text;
  try {
    on_grid({1, 1}, [&](const Grid& mesh) {
      last.read<Ids>(mesh, {4, 2}, [](std::uint64_t, const auto&) { return 0; });
    });
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK(text.find("1 samples") != std::string::npos);
  CHECK(text.find("found 4") != std::string::npos);
}
