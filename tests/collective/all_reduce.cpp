// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/all_reduce.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "../support/sanitized.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/ring.hpp"
#include "support.hpp"

namespace {

using namespace test;

template <class T, class Op>
void reduce_once(Communicator& communicator, std::size_t size, Algorithm algorithm, bool in_place) {
  const int rank = communicator.rank();
  const std::vector<T> wanted = expected<T, Op>(communicator.size());
  Guarded<T> in(size);
  Guarded<T> out(size);
  T* const data = in.data();
  for (std::size_t i = 0; i < size; ++i) data[i] = value<T, Op>(rank, i);
  CollectiveOptions options;
  options.algorithm = algorithm;
  const Traffic before = communicator.traffic();
  if (in_place) {
    all_reduce<Op>(communicator, in.span(), options);
  } else {
    all_reduce<Op>(communicator, in.span(), out.span(), options);
  }
  const Traffic traffic = communicator.traffic() - before;
  const std::string what = std::string(Op::name) + " of " + element_name(element_kind<T>) + " x " +
                           std::to_string(size) + (in_place ? " in place, " : ", ") + algorithm_name(algorithm) +
                           ", ranks " + std::to_string(communicator.size());
  in.check(what.c_str());
  out.check(what.c_str());
  const auto result = in_place ? in.span() : out.span();
  const T* const items = result.data();
  std::size_t right = 0;
  while (right < size && items[right] == wanted[right % period]) ++right;
  require(right == size, what + ", element " + std::to_string(right));
  std::size_t kept = 0;
  while (!in_place && kept < size && data[kept] == value<T, Op>(rank, kept)) ++kept;
  require(in_place || kept == size, what + ", input written");
  const auto p = static_cast<std::uint64_t>(communicator.size());
  const std::uint64_t own = begin_of(size, communicator.size(), rank + 1) - begin_of(size, communicator.size(), rank);
  require(traffic.volume == (p == 1 ? 0 : ((p - 1) * own + size - own) * sizeof(T)), what + ", volume");
  require(traffic.calls == 1, what + ", calls");
}

template <class T>
void reduce_all() {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      Draw draw(static_cast<std::uint64_t>(ranks));
      for (const std::size_t size : sizes) {
        const std::uint64_t usual = size <= 64 ? 3 : size <= 1000 ? 7 : 16;
        const std::uint64_t step = full() ? 1 : building::sanitized ? 3 * usual : usual;
        for (std::uint64_t k = draw(step); k < 16; k += step) {
          const Algorithm algorithm = algorithms[k % 2];
          const bool in_place = k / 2 % 2 == 1;
          switch (k / 4) {
            case 0: reduce_once<T, Sum>(communicator, size, algorithm, in_place); break;
            case 1: reduce_once<T, Product>(communicator, size, algorithm, in_place); break;
            case 2: reduce_once<T, Min>(communicator, size, algorithm, in_place); break;
            default: reduce_once<T, Max>(communicator, size, algorithm, in_place); break;
          }
        }
      }
    });
  }
}

}  // namespace

TEST_CASE("all_reduce equals plain loops for every rank, size, operation, algorithm and placement") {
  SUBCASE("f32") { reduce_all<float>(); }
  SUBCASE("bf16") { reduce_all<bf16>(); }
  SUBCASE("i8") { reduce_all<std::int8_t>(); }
  SUBCASE("u64") { reduce_all<std::uint64_t>(); }
}

TEST_CASE("direct all_reduce is the left fold in rank order, and all ranks hold the same bits") {
  for (const int ranks : {2, 5, 9}) {
    std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
    const auto item = [](int rank, std::size_t i) {
      return std::sin(static_cast<float>(i * 31 + static_cast<std::size_t>(rank) * 17)) *
             std::pow(10.0F, static_cast<float>(i % 7) - 3);
    };
    for (const Algorithm algorithm : algorithms) {
      on_both(ranks, [&](Communicator& communicator) {
        std::vector<float> data(4099);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = item(communicator.rank(), i);
        all_reduce(communicator, data, CollectiveOptions{algorithm, -1});
        results[static_cast<std::size_t>(communicator.rank())] = data;
      });
      for (const auto& result : results) CHECK(same_bits<float>(result, results[0]));
      if (algorithm != Algorithm::direct) continue;
      bool right = true;
      for (std::size_t i = 0; i < results[0].size(); ++i) {
        float sum = item(0, i);
        for (int rank = 1; rank < ranks; ++rank) sum += item(rank, i);
        right = right && results[0][i] == sum;
      }
      CHECK(right);
    }
  }
}

TEST_CASE("moved and messages follow from the schedules") {
  launch(4, [](Communicator& communicator) {
    std::vector<float> data(400);
    std::vector<float> out(400);
    const auto cost = [&](Algorithm algorithm) {
      const Traffic before = communicator.traffic();
      all_reduce(communicator, data, out, CollectiveOptions{algorithm, -1});
      return communicator.traffic() - before;
    };
    const Traffic direct = cost(Algorithm::direct);
    require(direct.moved == 6 * 400 && direct.messages == 6, "direct reads 3 blocks and writes 3");
    require(direct.volume == 6 * 400, "the volume is 2 (p - 1) / p of the vector");
    const Traffic ring = cost(Algorithm::ring);
    require(ring.moved == 6 * 400 && ring.messages == 6, "ring reads 6 blocks");
  });
}

TEST_CASE("large vectors take the streaming path with the same bits") {
  const std::size_t size = (std::size_t{24} << 20) / sizeof(float) + 13;
  launch(2, [&](Communicator& communicator) {
    std::vector<float> in(size);
    std::vector<float> out(size, -1.0F);
    for (std::size_t i = 0; i < size; ++i) in[i] = value<float, Sum>(communicator.rank(), i);
    all_reduce(communicator, in, out);
    const std::vector<float> wanted = expected<float, Sum>(2);
    bool good = true;
    for (std::size_t i = 0; i < size; ++i) good = good && out[i] == wanted[i % period];
    require(good, "wrong sum");
  });
}

TEST_CASE("bad spans are refused before anything is sent") {
  launch(2, [](Communicator& communicator) {
    std::vector<float> data(10);
    const std::span<float> all(data);
    const auto refused = [&](auto&& call, const char* word) {
      try {
        call();
      } catch (const Error& error) {
        require(error.code() == Code::invalid_argument && contains(error.what(), word), error.what());
        return;
      }
      require(false, "not refused");
    };
    refused([&] { all_reduce(communicator, all.first(4), all.last(5)); }, "expected an input as long as the output");
    refused([&] { all_reduce(communicator, all.first(6), all.last(6)); }, "an overlap");
    refused([&] { all_reduce(communicator, std::span<float>(static_cast<float*>(nullptr), 3)); }, "null");
    Communicator empty;
    refused([&] { all_reduce(empty, data); }, "an empty one");
    data.assign(10, 1.0F);
    all_reduce(communicator, data);
    require(data[9] == 2.0F, "the communicator is still usable");
  });
}

TEST_CASE("one algorithm is named in one place") {
  launch(2, [](Communicator& world) {
    std::vector<float> in(3, 1.0F), out(3);
    CollectiveOptions ring;
    ring.algorithm = Algorithm::ring;
    CHECK_THROWS_AS(all_reduce<Ring>(world, in, out, ring), Error);
    CollectiveOptions passed;
    passed.generator = AnyGenerator::of<Ring>();
    CHECK_THROWS_AS(all_reduce<Direct>(world, in, out, passed), Error);
    passed.algorithm = Algorithm::direct;
    CHECK_THROWS_AS(all_reduce(world, in, out, passed), Error);
    all_reduce<Ring>(world, in, out);
    CHECK(out[2] == 2.0F);
  });
}
