// SPDX-License-Identifier: Apache-2.0
// How contributions are combined, whatever the operation: averages, factors, truth values, wire elements, operations of
// the caller's own, algorithms by type.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "meshwise/collective/all_gather.hpp"
#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/broadcast.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/schedule/direct.hpp"
#include "meshwise/schedule/ring.hpp"
#include "rooted.hpp"

namespace {

using namespace test;

float real(int rank, std::size_t i) {
  return std::sin(static_cast<float>(i * 31 + static_cast<std::size_t>(rank) * 17)) *
         std::pow(10.0F, static_cast<float>(i % 5) - 2);
}

/// The first value of a rank's two.
struct First {
  static constexpr const char* name = "first";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <class T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{-1};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return a == A{-1} ? b : a;
  }
};

/// The last one; another operation with the same properties.
struct Last {
  static constexpr const char* name = "last";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <class T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{-1};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return b == A{-1} ? a : b;
  }
};

/// A caller's own algorithm: Direct by another name.
struct Mine : Direct {
  static constexpr const char* name = "mine";
};
static_assert(Generator<Mine>);

CollectiveOptions by(Algorithm algorithm) {
  CollectiveOptions options;
  options.algorithm = algorithm;
  return options;
}

}  // namespace

TEST_CASE("an average divides the sum once, whatever the algorithm; integers truncate and their sum wraps") {
  for (const int ranks : {1, 2, 3, 7}) {
    on_both(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      for (const Algorithm algorithm : algorithms) {
        for (const std::size_t size : {0U, 1U, 3U, 1000U}) {
          std::vector<double> data(size), out(size);
          std::vector<std::int8_t> small(size);
          for (std::size_t i = 0; i < size; ++i) {
            data[i] = value<int, Sum>(rank, i);
            small[i] = static_cast<std::int8_t>(static_cast<int>(i % 256) - 128 + rank);
          }
          all_reduce<Average>(communicator, data, out, by(algorithm));
          all_reduce<Average>(communicator, small, by(algorithm));
          const std::vector<double> sums = expected<double, Sum>(ranks);
          for (std::size_t i = 0; i < size; ++i) {
            require(out[i] == sums[i % period] / ranks, "average of doubles");
            std::int8_t sum = 0;
            for (int r = 0; r < ranks; ++r) {
              sum = static_cast<std::int8_t>(sum + static_cast<std::int8_t>(static_cast<int>(i % 256) - 128 + r));
            }
            require(small[i] == sum / ranks, "average of i8");
          }
          std::vector<float> whole(size, static_cast<float>(rank));
          const auto own = reduce_scatter<Average>(communicator, whole, by(algorithm));
          for (const float x : own) require(x == static_cast<float>(ranks - 1) / 2, "average, scattered");
        }
      }
    });
  }
}

TEST_CASE("a factor belongs to its rank, and products are rounded before they are combined") {
  for (const int ranks : {1, 4}) {
    on_both(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      for (const Algorithm algorithm : algorithms) {
        CollectiveOptions options = by(algorithm);
        options.factor = 0.1 * (rank + 1);
        const std::vector<bf16> in(67, bf16(3.0F));
        std::vector<bf16> out(67), same(in), block(in);
        all_reduce<PreMultipliedSum>(communicator, in, out, options);
        all_reduce<PreMultipliedSum>(communicator, same, options);
        const auto own = reduce_scatter<PreMultipliedSum>(communicator, block, options);
        float sum = 0;
        for (int r = 0; r < ranks; ++r) sum += bf16(3.0F * static_cast<float>(0.1 * (r + 1)));
        if (algorithm == Algorithm::direct) require(out[66] == bf16(sum), "the sum of rounded products");
        require(same_bits<bf16>(out, same), "in place");
        require(own.empty() || own[0] == out[0] || algorithm != Algorithm::direct, "scattered");
        std::size_t others = 0;
        for (const bf16 x : block) others += x == bf16(3.0F) ? 1U : 0U;
        require(others + own.size() >= 67, "the rest of the input stays");
      }
      std::vector<std::uint8_t> bytes(5, 100);
      CollectiveOptions options;
      options.factor = 3;
      all_reduce<PreMultipliedSum>(communicator, bytes, options);
      require(bytes[0] == static_cast<std::uint8_t>(300 * ranks), "integers wrap");
      options.factor = 0.5;
      refuse([&] { all_reduce<PreMultipliedSum>(communicator, bytes, options); }, "a whole factor");
      refuse([&] { all_reduce(communicator, bytes, options); }, "a factor for a PreMultipliedSum only");
    });
  }
}

TEST_CASE("a wire element: fp32 on the way gives the fp32 sum rounded once, whatever the algorithm") {
  for (const int ranks : {1, 2, 5, 9}) {
    on_both(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      CollectiveOptions options;
      options.wire = ElementKind::f64;  // exact: any order gives the same sum
      for (const Algorithm algorithm : algorithms) {
        options.algorithm = algorithm;
        for (const std::size_t size : {0U, 1U, 7U, 1000U, 5003U}) {
          std::vector<bf16> in(size), out(size), wanted(size);
          for (std::size_t i = 0; i < size; ++i) {
            double sum = 0;
            for (int r = 0; r < ranks; ++r) sum += static_cast<float>(bf16(real(r, i)));
            in[i] = bf16(real(rank, i));
            wanted[i] = bf16(sum);
          }
          const std::vector<bf16> before = in;
          all_reduce(communicator, in, out, options);
          require(same_bits<bf16>(out, wanted), "bf16 through f64");
          require(same_bits<bf16>(in, before), "the input is only read");
          all_reduce(communicator, in, options);
          require(same_bits<bf16>(in, wanted), "in place");
          in = before;
          const auto own = reduce_scatter(communicator, in, options);
          const std::size_t first = static_cast<std::size_t>(own.data() - in.data());
          require(same_bits<bf16>(own, std::span(wanted).subspan(first, own.size())), "scattered");
        }
      }
      options.wire = ElementKind::f32;
      options.algorithm = Algorithm::ring;
      const std::vector<fp16> halves(100, fp16(1.0F / 3));
      std::vector<fp16> out(100);
      all_reduce<Average>(communicator, halves, out, options);
      require(same_bits<fp16>(out, halves), "an average through f32 is rounded once");
    });
  }
}

TEST_CASE("a narrow wire element rounds, and all ranks hold the same bits") {
  on_both(3, [](Communicator& communicator) {
    CollectiveOptions options;
    for (const ElementKind wire : {ElementKind::bf16, ElementKind::f16, ElementKind::f8e4m3, ElementKind::f8e5m2}) {
      options.wire = wire;
      const auto rounded = [wire](float x) -> float {
        switch (wire) {
          case ElementKind::bf16: return bf16(x);
          case ElementKind::f16: return fp16(x);
          case ElementKind::f8e4m3: return f8e4m3(x);
          default: return f8e5m2(x);
        }
      };
      std::vector<float> data(10);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = real(communicator.rank(), i);
      std::vector<float> sums = data;
      std::vector<float> extremes = data;
      const Traffic before = communicator.traffic();
      all_reduce(communicator, sums, options);
      require((communicator.traffic() - before).volume % element_size(wire) == 0, "volume counts what travels");
      all_reduce<Max>(communicator, extremes, options);
      for (std::size_t i = 0; i < data.size(); ++i) {
        float sum = 0, extreme = -std::numeric_limits<float>::infinity();
        for (int r = 0; r < 3; ++r) {
          sum += rounded(real(r, i));
          extreme = std::max(extreme, rounded(real(r, i)));
        }
        require(sums[i] == rounded(sum), "sum");
        require(extremes[i] == extreme, "maximum");
      }
      std::vector<float> all(7, real(communicator.rank(), 3));
      all_gather(communicator, all, options);
      for (int r = 0; r < 3; ++r) require(all[begin_of(7, 3, r)] == rounded(real(r, 3)), "gathered, the own block too");
      std::vector<float> copies(5, real(communicator.rank(), 4));
      broadcast(communicator, copies, 1, options);
      require(copies[4] == rounded(real(1, 4)), "broadcast, the root's too");
    }
  });
  launch(2, [](Communicator& communicator) {
    CollectiveOptions options;
    options.wire = ElementKind::f32;
    std::vector<int> whole(4);
    refuse([&] { all_reduce(communicator, whole, options); }, "a floating-point wire element");
    struct Pair {
      int a, b;
    };
    std::vector<Pair> pairs(4);
    refuse([&] { broadcast(communicator, pairs, 0, options); }, "plain bytes and f32");
    std::vector<float> data(4);
    options.wire = ElementKind::i32;
    refuse([&] { all_reduce(communicator, data, options); }, "f32 and i32");
  });
}

TEST_CASE("fp8 data is combined in fp32") {
  launch(4, [](Communicator& communicator) {
    std::vector<f8e4m3> data(9, f8e4m3(communicator.rank() == 0 ? 16.0F : 0.5F));
    all_reduce(communicator, data);
    require(data[8] == f8e4m3(17.5F), "16 + 0.5 + 0.5 + 0.5; step by step it would stay 16");
    std::vector<f8e5m2> other(9, f8e5m2(1.0F));
    CollectiveOptions options;
    options.wire = ElementKind::f32;
    options.algorithm = Algorithm::ring;
    all_reduce(communicator, other, options);
    require(other[0] == f8e5m2(4.0F), "through f32");
  });
}

TEST_CASE("a group of one does what the combination says") {
  launch(1, [](Communicator& communicator) {
    CollectiveOptions options;
    options.factor = 4;
    std::vector<float> data(3, 2.0F), out(3);
    all_reduce<PreMultipliedSum>(communicator, data, out, options);
    require(out[2] == 8 && data[2] == 2, "factor");
    all_reduce<PreMultipliedSum>(communicator, data, options);
    require(data[2] == 8, "factor in place");
    all_reduce<Average>(communicator, data);
    require(data[2] == 8, "average");
    std::vector<int> truth(3, -5);
    all_reduce<LogicalAnd>(communicator, truth);
    require(truth[2] == 1, "a truth value");
    all_reduce<BitXor>(communicator, truth);
    require(truth[2] == 1, "bits");
    options = {};
    options.wire = ElementKind::f8e4m3;
    std::vector<float> fine(3, 1.01F);
    all_reduce(communicator, fine, options);
    require(fine[0] == f8e4m3(1.01F), "the wire rounds");
  });
}

TEST_CASE("operations of the caller's own keep rank order if they must, and ranks must agree on them") {
  for (const int ranks : {1, 2, 6}) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t size : {1U, 5U, 1000U}) {
        std::vector<int> data(size, communicator.rank() + 10);
        all_reduce<First>(communicator, data);
        require(data == std::vector<int>(size, 10), "the first");
        data.assign(size, communicator.rank() + 10);
        reduce_scatter<Last>(communicator, data);
      }
    });
  }
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    std::vector<int> data(4);
    if (communicator.rank() == 0) return all_reduce<First>(communicator, data);
    all_reduce<Last>(communicator, data);
  });
  CHECK(result.code[0] == Code::mismatch);
  CHECK(result.code[1] == Code::mismatch);
}

TEST_CASE("an algorithm by its type, by its name, by value; ranks must agree on it") {
  on_both(4, [](Communicator& communicator) {
    std::vector<float> data(100, 1.0F);
    all_reduce<Ring>(communicator, data);
    all_reduce<Ring, Max>(communicator, data);
    all_reduce<Max, Ring>(communicator, data);
    all_reduce<Mine>(communicator, data);
    const Mine mine;
    CollectiveOptions options;
    options.generator = AnyGenerator(mine);
    all_reduce(communicator, data, options);
    require(data[99] == 64.0F, "4 * 4 * 4");
    options = by(Algorithm::custom);
    refuse([&] { all_reduce(communicator, data, options); }, "a generator for the algorithm custom");
    options = {};
    options.lanes = -1;
    refuse([&] { all_reduce(communicator, data, options); }, "a number of lanes");
    options.lanes = 3;
    options.algorithm = Algorithm::ring;
    all_reduce(communicator, data, options);
    require(data[50] == 256.0F, "in lanes");
  });
  const Outcome result = outcome(2, Setup{}, [](Communicator& communicator) {
    std::vector<float> data(100);
    if (communicator.rank() == 0) return all_reduce<Ring>(communicator, data);
    all_reduce<Mine>(communicator, data);
  });
  CHECK(result.code[0] == Code::mismatch);
  CHECK(result.code[1] == Code::mismatch);
}

TEST_CASE("reproducible sums are those in rank order") {
  for (const int ranks : {2, 5, 8}) {
    on_both(ranks, [&](Communicator& communicator) {
      CollectiveOptions options;
      options.reproducible = true;
      for (const std::size_t size : {1U, 100U, 20000U}) {
        std::vector<float> data(size);
        for (std::size_t i = 0; i < size; ++i) data[i] = real(communicator.rank(), i);
        all_reduce(communicator, data, options);
        for (std::size_t i = 0; i < size; ++i) {
          float sum = real(0, i);
          for (int r = 1; r < ranks; ++r) sum += real(r, i);
          require(data[i] == sum, "rank order");
        }
      }
    });
  }
}

TEST_CASE("NaN passes, zeros have signs, integers wrap") {
  on_both(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> data{rank == 1 ? nan : 1.0F, rank == 2 ? 0.0F : -0.0F};
    std::vector<float> low = data;
    all_reduce<Max>(communicator, data);
    all_reduce<Min>(communicator, low);
    require(std::isnan(data[0]) && std::isnan(low[0]), "NaN");
    require(!std::signbit(data[1]) && std::signbit(low[1]), "-0 is less than +0");
    std::vector<std::int32_t> large(3, std::numeric_limits<std::int32_t>::max());
    all_reduce(communicator, large);
    require(large[0] == static_cast<std::int32_t>(3U * 0x7fffffffU), "overflow");
  });
}
