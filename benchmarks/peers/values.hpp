// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "operation.hpp"

namespace peers {

/// Element i of a rank's input: whole numbers whose sums are exact in float, different at neighbours and in blocks.
constexpr float value_of(int rank, std::size_t i) {
  return static_cast<float>(3 * (rank + 1) + static_cast<int>(i % 13));
}

constexpr float sum_of(int ranks, std::size_t i) {
  return static_cast<float>(3 * ranks * (ranks + 1) / 2 + ranks * static_cast<int>(i % 13));
}

/// Elements of a rank's result that are not what they should be. W: as Work.
template <class W>
std::uint32_t wrong_elements(const W& work, int rank, int ranks) {
  std::uint32_t wrong = 0;
  const auto compare = [&wrong](const float* found, std::size_t count, const auto& expected) {
    for (std::size_t i = 0; i < count; ++i) wrong += found[i] == expected(i) ? 0U : 1U;
  };
  const std::size_t block = work.block;
  const std::size_t begin = block * static_cast<std::size_t>(rank);
  const auto sum = [&](std::size_t i) { return sum_of(ranks, i); };
  switch (work.operation) {
    case Operation::all_reduce:
    case Operation::all_reduce_in_place: compare(work.out, work.count, sum); break;
    case Operation::reduce:
      if (rank == 0) compare(work.out, work.count, sum);
      break;
    case Operation::reduce_scatter: compare(work.out, block, [&](std::size_t i) { return sum(begin + i); }); break;
    case Operation::broadcast: compare(work.in, work.count, [](std::size_t i) { return value_of(0, i); }); break;
    case Operation::gather:
      if (rank != 0) break;
      [[fallthrough]];
    case Operation::all_gather:
      compare(work.out, work.count, [&](std::size_t i) { return value_of(static_cast<int>(i / block), i % block); });
      break;
    case Operation::all_to_all:
      compare(work.out, work.count,
              [&](std::size_t i) { return value_of(static_cast<int>(i / block), begin + i % block); });
      break;
    case Operation::scatter: compare(work.out, block, [&](std::size_t i) { return value_of(0, begin + i); }); break;
    case Operation::send_recv:
      if (rank == 1) compare(work.out, work.count, [](std::size_t i) { return value_of(0, i); });
      break;
    case Operation::exchange:
      compare(work.out, work.count, [&](std::size_t i) { return value_of((rank + ranks - 1) % ranks, i); });
      break;
    case Operation::barrier: break;
  }
  return wrong;
}

}  // namespace peers
