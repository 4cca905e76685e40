// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/reduce_scatter.hpp"

#include <doctest/doctest.h>

#include "meshwise/collective/all_reduce.hpp"
#include "support.hpp"

namespace {

using namespace test;

template <class T, class Op>
void scatter_once(Communicator& communicator, std::size_t size, Algorithm algorithm, bool in_place) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  const std::size_t begin = begin_of(size, ranks, rank);
  const std::size_t own = begin_of(size, ranks, rank + 1) - begin;
  const std::vector<T> wanted = expected<T, Op>(ranks);
  Guarded<T> in(size);
  Guarded<T> out(own);
  T* const data = in.data();
  for (std::size_t i = 0; i < size; ++i) data[i] = value<T, Op>(rank, i);
  CollectiveOptions options;
  options.algorithm = algorithm;
  const Traffic before = communicator.traffic();
  std::span<T> result = out.span();
  if (in_place) {
    result = reduce_scatter<Op>(communicator, in.span(), options);
    require(result.data() == in.data() + begin && result.size() == own, "the result lies in its block");
  } else {
    reduce_scatter<Op>(communicator, in.span(), out.span(), options);
  }
  const std::string what = std::string(Op::name) + " x " + std::to_string(size) + ", ranks " + std::to_string(ranks) +
                           ", " + algorithm_name(algorithm) + (in_place ? ", in place" : "");
  in.check(what.c_str());
  out.check(what.c_str());
  bool right = true;
  for (std::size_t i = 0; i < own; ++i) right = right && result[i] == wanted[(begin + i) % period];
  require(right, what);
  bool kept = true;
  for (std::size_t i = 0; i < size; ++i) {
    if (in_place && i >= begin && i < begin + own) continue;
    kept = kept && data[i] == value<T, Op>(rank, i);
  }
  require(kept, what + ": the rest of the input is unchanged");
  const std::uint64_t volume = (communicator.traffic() - before).volume;
  require(volume == static_cast<std::uint64_t>(ranks - 1) * own * sizeof(T), what + ": volume");
}

}  // namespace

TEST_CASE("reduce_scatter equals plain loops") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t size : sizes) {
        for (const Algorithm algorithm : algorithms) {
          for (const bool in_place : both) {
            scatter_once<float, Sum>(communicator, size, algorithm, in_place);
            if (size <= 1000 || full()) scatter_once<std::int32_t, Max>(communicator, size, algorithm, in_place);
          }
        }
      }
    });
  }
}

TEST_CASE("reduce_scatter is a block of all_reduce, bit for bit") {
  for (const Algorithm algorithm : algorithms) {
    on_both(5, [&](Communicator& communicator) {
      std::vector<float> data(1003);
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = 1.0F / static_cast<float>(1 + i * 5 + static_cast<std::size_t>(communicator.rank()));
      }
      const CollectiveOptions options{algorithm, -1};
      std::vector<float> all(data.size());
      all_reduce(communicator, data, all, options);
      const auto own = reduce_scatter(communicator, data, options);
      const std::size_t begin = begin_of(data.size(), 5, communicator.rank());
      require(same_bits<float>(own, std::span(all).subspan(begin, own.size())), "different bits");
    });
  }
}

TEST_CASE("reduce_scatter refuses sizes and overlaps that do not fit") {
  launch(3, [](Communicator& communicator) {
    std::vector<float> data(10);
    const std::span<float> all(data);
    const std::size_t own = begin_of(10, 3, communicator.rank() + 1) - begin_of(10, 3, communicator.rank());
    const auto refused = [&](std::span<float> out, const char* word) {
      try {
        reduce_scatter(communicator, all, out);
      } catch (const Error& error) {
        require(error.code() == Code::invalid_argument && contains(error.what(), word), error.what());
        return;
      }
      require(false, "not refused");
    };
    std::vector<float> out(own + 1);
    refused(out, "this rank's block");
    const std::size_t begin = begin_of(10, 3, communicator.rank());
    refused(all.subspan(communicator.rank() == 2 ? begin - 1 : begin + 1, own), "an overlap");
  });
}
