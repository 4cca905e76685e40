// SPDX-License-Identifier: Apache-2.0
#include "meshwise/collective/all_gather.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

namespace {

using namespace test;

struct Triple {
  std::uint16_t a, b, c;
  bool operator==(const Triple&) const = default;
};

template <class T, class Make>
void gather_once(Communicator& communicator, std::size_t size, Algorithm algorithm, bool in_place, Make make) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  const std::size_t begin = begin_of(size, ranks, rank);
  const std::size_t own = begin_of(size, ranks, rank + 1) - begin;
  Guarded<T> in(own);
  Guarded<T> out(size);
  CollectiveOptions options;
  options.algorithm = algorithm;
  const Traffic before = communicator.traffic();
  for (std::size_t i = 0; i < own; ++i) (in_place ? out.span()[begin + i] : in.span()[i]) = make(begin + i);
  if (in_place) {
    all_gather(communicator, out.span(), options);
  } else {
    all_gather(communicator, in.span(), out.span(), options);
  }
  in.check("input");
  out.check("output");
  const std::string what = std::to_string(size) + " x " + std::to_string(sizeof(T)) + " bytes, ranks " +
                           std::to_string(ranks) + ", " + algorithm_name(algorithm);
  bool right = true;
  for (std::size_t i = 0; i < size; ++i) right = right && out.data()[i] == make(i);
  require(right, what);
  require((communicator.traffic() - before).volume == (ranks == 1 ? 0 : (size - own) * sizeof(T)), what + ": volume");
}

}  // namespace

TEST_CASE("all_gather puts the blocks together, equal or not, of elements and of other types") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    on_both(ranks, [&](Communicator& communicator) {
      for (const std::size_t size : sizes) {
        for (const Algorithm algorithm : algorithms) {
          for (const bool in_place : both) {
            gather_once<std::uint32_t>(communicator, size, algorithm, in_place,
                                       [](std::size_t i) { return static_cast<std::uint32_t>(i * 2654435761U); });
            gather_once<Triple>(communicator, size, algorithm, in_place, [](std::size_t i) {
              return Triple{static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(i >> 16),
                            static_cast<std::uint16_t>(i * 3)};
            });
          }
        }
      }
    });
  }
}

TEST_CASE("all_gather in place through two spans, empty blocks included") {
  launch(4, [](Communicator& communicator) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{10}}) {
      std::vector<int> data(size, -1);
      const std::size_t begin = begin_of(size, 4, communicator.rank());
      const auto own = std::span(data).subspan(begin, begin_of(size, 4, communicator.rank() + 1) - begin);
      for (int& item : own) item = communicator.rank();
      all_gather(communicator, own, data);
      for (int k = 0; k < 4; ++k) {
        for (std::size_t i = begin_of(size, 4, k); i < begin_of(size, 4, k + 1); ++i) require(data[i] == k, "wrong");
      }
    }
  });
}

TEST_CASE("all_gather refuses an input that is not this rank's block") {
  launch(2, [](Communicator& communicator) {
    std::vector<int> in(3);
    std::vector<int> out(5);
    const std::size_t own = communicator.rank() == 0 ? 2 : 3;
    try {
      all_gather(communicator, std::span(in).first(5 - own), out);
      require(false, "not refused");
    } catch (const Error& error) {
      require(contains(error.what(), std::to_string(own) + " elements"), error.what());
      require(contains(error.what(), "found " + std::to_string(5 - own)), error.what());
    }
    try {
      all_gather(communicator, std::span(out).subspan(communicator.rank() == 0 ? 1 : 0, own), out);
      require(false, "not refused");
    } catch (const Error& error) {
      require(contains(error.what(), "overlap"), error.what());
    }
  });
}

TEST_CASE("an empty block that lies at its in-place position by accident makes no mismatch") {
  launch(4, [](Communicator& world) {
    // Rank 0 of 4 has nothing of 3 elements; its input ends where its output begins.
    float arena[8] = {};
    const std::size_t own = world.rank() == 0 ? 0 : 1;
    if (own != 0) arena[0] = static_cast<float>(world.rank());
    const std::span<float> all(arena + own, 3);
    all_gather(world, std::span<const float>(arena, own), all);
    for (std::size_t i = 0; i < 3; ++i) require(all[i] == static_cast<float>(i + 1), "gathered");
    // In place with fewer elements than ranks, out of one span and out of two.
    float data[3] = {};
    if (own != 0) data[world.rank() - 1] = static_cast<float>(10 * world.rank());
    all_gather(world, std::span<float>(data));
    for (std::size_t i = 0; i < 3; ++i) require(data[i] == static_cast<float>(10 * (i + 1)), "in place");
  });
}
