// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/scan.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "meshwise/schedule/ring.hpp"
#include "rooted.hpp"

namespace {

using namespace test;

/// x -> a x + b modulo 2^16, as b and a in the halves of a number: composition is associative and not commutative.
struct Compose {
  static constexpr const char* name = "compose";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <class T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{1} << 16;
  }
  template <class A>
  static constexpr A apply(A first, A then) {
    const A a = (first >> 16) * (then >> 16);
    const A b = (first & 0xffffU) * (then >> 16) + (then & 0xffffU);
    return static_cast<A>(a << 16 | (b & 0xffffU));
  }
};
static_assert(Reduces<Compose, std::uint32_t>);

std::uint32_t affine(int rank, std::size_t i) {
  return (static_cast<std::uint32_t>(rank) * 7 + static_cast<std::uint32_t>(i) * 3 + 2) << 16 |
         (static_cast<std::uint32_t>(rank + 1) * 11 + static_cast<std::uint32_t>(i));
}

template <class Op, bool inclusive, class... Choices>
void scan_once(Communicator& communicator, std::size_t size, Algorithm algorithm, bool in_place) {
  using T = std::uint32_t;
  const int rank = communicator.rank();
  Guarded<T> in(size);
  Guarded<T> out(size);
  for (std::size_t i = 0; i < size; ++i) in.data()[i] = affine(rank, i % period);
  const std::span<T> result = in_place ? in.span() : out.span();
  CollectiveOptions options;
  options.algorithm = algorithm;
  if (in_place && inclusive) inclusive_scan<Op, Choices...>(communicator, in.span(), options);
  if (in_place && !inclusive) exclusive_scan<Op, Choices...>(communicator, in.span(), options);
  if (!in_place && inclusive) inclusive_scan<Op, Choices...>(communicator, in.span(), out.span(), options);
  if (!in_place && !inclusive) exclusive_scan<Op, Choices...>(communicator, in.span(), out.span(), options);
  const std::string what = std::string(inclusive ? "inclusive " : "exclusive ") + Op::name + " of " +
                           std::to_string(size) + (in_place ? " in place, " : ", ") + algorithm_name(algorithm) +
                           ", rank " + std::to_string(rank) + " of " + std::to_string(communicator.size());
  in.check(what.c_str());
  out.check(what.c_str());
  std::vector<T> wanted(period, Op::template identity<T>());
  for (std::size_t i = 0; i < period; ++i) {
    for (int r = 0; r < rank + (inclusive ? 1 : 0); ++r) wanted[i] = Op::apply(wanted[i], affine(r, i));
  }
  require_items(result.data(), size, what, [&](std::size_t i) { return wanted[i % period]; });
  if (!in_place) {
    require_items(in.data(), size, what + ", input", [&](std::size_t i) { return affine(rank, i % period); });
  }
}

}  // namespace

TEST_CASE("scans equal plain loops in rank order, for operations that do not commute too") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t size : {0U, 1U, 2U, 7U, 64U, 1000U}) {
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct}) {
          for (const bool in_place : both) {
            scan_once<Compose, true>(communicator, size, algorithm, in_place);
            scan_once<Compose, false>(communicator, size, algorithm, in_place);
            scan_once<Sum, true>(communicator, size, algorithm, in_place);
            scan_once<Min, false>(communicator, size, algorithm, in_place);
          }
        }
        scan_once<Sum, true, Ring>(communicator, size, Algorithm::automatic, false);
        scan_once<Sum, false, Ring>(communicator, size, Algorithm::automatic, true);
      }
    });
  }
}

TEST_CASE("rank 0 of an exclusive scan gets the neutral value, also of one rank") {
  for (const int ranks : {1, 3}) {
    launch(ranks, [](Communicator& communicator) {
      std::vector<float> data(3, 4.0F);
      exclusive_scan<Min>(communicator, data);
      if (communicator.rank() == 0) require(data[2] == std::numeric_limits<float>::infinity(), "identity of min");
      std::vector<bf16> other(3, bf16(2.0F));
      exclusive_scan<Product>(communicator, other);
      const float wanted[] = {1, 2, 4};
      require(other[0] == wanted[communicator.rank()], "products");
    });
  }
}

TEST_CASE("scans of factors and truth values") {
  launch(3, [](Communicator& communicator) {
    const int rank = communicator.rank();
    std::vector<int> data(4, 1);
    CollectiveOptions options;
    options.factor = rank + 1;
    inclusive_scan<PreMultipliedSum>(communicator, data, options);
    const int sums[] = {1, 3, 6};
    require(data[3] == sums[rank], "1, 1 + 2, 1 + 2 + 3");
    std::vector<int> truth(4, 7);
    inclusive_scan<LogicalOr>(communicator, truth);
    require(truth[0] == 1, "one contribution is a truth value too");
    truth.assign(4, 7);
    exclusive_scan<LogicalOr>(communicator, truth);
    require(truth[0] == (rank == 0 ? 0 : 1), "exclusive");
    std::vector<float> later = start_inclusive_scan(communicator, std::vector<float>(2, 1.0F)).wait();
    require(later[1] == static_cast<float>(rank + 1), "started");
    std::vector<float> again(2, 1.0F), sum(2);
    auto prepared = prepare_exclusive_scan(communicator, again, sum);
    prepared.run();
    require(prepared.run()[1] == static_cast<float>(rank), "prepared");
  });
}
