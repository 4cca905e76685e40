// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/reduce.hpp"

#include <doctest/doctest.h>

#include "rooted.hpp"

namespace {

using namespace test;

template <class T, class Op>
void reduce_once(Communicator& communicator, std::size_t size, int root, Algorithm algorithm, bool in_place) {
  const int rank = communicator.rank();
  const bool gets = rank == root;
  Guarded<T> in(size);
  Guarded<T> out(gets ? size : 0);
  for (std::size_t i = 0; i < size; ++i) in.data()[i] = value<T, Op>(rank, i);
  CollectiveOptions options;
  options.algorithm = algorithm;
  const Traffic before = communicator.traffic();
  if (in_place) {
    reduce<Op>(communicator, in.span(), root, options);
  } else {
    reduce<Op>(communicator, std::span<const T>(in.span()), gets ? out.span() : std::span<T>(), root, options);
  }
  const Traffic traffic = communicator.traffic() - before;
  const std::string what = std::string(Op::name) + " of " + std::to_string(size) + " to " + std::to_string(root) +
                           (in_place ? " in place, " : ", ") + algorithm_name(algorithm);
  in.check(what.c_str());
  out.check(what.c_str());
  const std::vector<T> wanted = expected<T, Op>(communicator.size());
  if (gets) {
    const T* const result = in_place ? in.data() : out.data();
    require_items(result, size, what, [&](std::size_t i) { return wanted[i % period]; });
  }
  if (!gets || !in_place) {
    require_items(in.data(), size, what + ", input", [&](std::size_t i) { return value<T, Op>(rank, i); });
  }
  const auto others = static_cast<std::uint64_t>(communicator.size() - 1);
  require(traffic.volume == (gets ? others * size * sizeof(T) : 0), what + ", volume");
}

}  // namespace

TEST_CASE("reduce equals plain loops at the root and leaves everything else alone") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const int root : roots(ranks)) {
        for (const std::size_t size : {0U, 1U, 3U, 8U, 1000U, 65537U}) {
          for (const Algorithm algorithm : algorithms) {
            for (const bool in_place : both) {
              if (size > 1000 && (root + in_place) % 2 == 0) continue;
              reduce_once<float, Sum>(communicator, size, root, algorithm, in_place);
              if (size <= 1000) reduce_once<std::int32_t, Max>(communicator, size, root, algorithm, in_place);
            }
          }
        }
      }
    });
  }
}

TEST_CASE("only the root divides an average") {
  launch(4, [](Communicator& communicator) {
    for (const Algorithm algorithm : algorithms) {
      std::vector<std::int64_t> data(9, communicator.rank() == 0 ? -7 : 2);  // the sum is -1
      std::vector<std::int64_t> out(9, 55);
      CollectiveOptions options;
      options.algorithm = algorithm;
      reduce<Average>(communicator, data, out, 3, options);
      require(out[8] == (communicator.rank() == 3 ? 0 : 55), "the average of -7, 2, 2, 2 truncates to 0");
      std::vector<double> items(5, communicator.rank());
      reduce<Average>(communicator, items, 1, options);
      require(items[4] == (communicator.rank() == 1 ? 1.5 : communicator.rank()), "average in place");
    }
  });
}

TEST_CASE("started and prepared reductions") {
  launch(3, [](Communicator& communicator) {
    const bool root = communicator.rank() == 2;
    std::vector<int> result = start_reduce(communicator, std::vector<int>(5, communicator.rank()), 2).wait();
    require(result == std::vector<int>(5, root ? 3 : communicator.rank()), "owned, in place");
    const std::vector<int> in(5, 1);
    std::vector<int> out(root ? 5 : 0);
    auto prepared = prepare_reduce<Product>(communicator, in, out, 2);
    for (int i = 0; i < 3; ++i) require(prepared.run().size() == out.size(), "prepared");
    require(!root || out[4] == 1, "product");
  });
}

TEST_CASE("bad reductions are refused before anything is sent") {
  launch(2, [](Communicator& communicator) {
    std::vector<float> data(8);
    const std::span<float> all(data);
    refuse([&] { reduce(communicator, data, 2); }, "a root from 0 to 1");
    refuse([&] { reduce(communicator, std::span<float>(static_cast<float*>(nullptr), 3), 1); }, "null");
    if (communicator.rank() == 0) {
      refuse([&] { reduce(communicator, all, all.first(4), 0); }, "an output of the root as long as the input");
      refuse([&] { reduce(communicator, all.first(4), all.subspan(1, 4), 0); }, "an overlap");
    }
    reduce(communicator, data, 1);
  });
}
