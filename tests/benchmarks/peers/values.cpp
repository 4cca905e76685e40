// SPDX-License-Identifier: Apache-2.0
#include "../../../benchmarks/peers/values.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace peers;

namespace {

struct Work {
  Operation operation;
  std::size_t count, block;
  float* in;
  float* out;
};

/// The vectors of all ranks, and an operation done by the book.
class Model {
 public:
  Model(Operation operation, int ranks, std::size_t block)
      : operation_(operation), ranks_(ranks), block_(block), count_(block * static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> own(count_);
      for (std::size_t i = 0; i < count_; ++i) own[i] = value_of(rank, i);
      inputs_.push_back(own);
      outputs_.emplace_back(count_, -1.0F);
    }
    for (int rank = 0; rank < ranks; ++rank) perform(rank);
    if (operation == Operation::broadcast) {
      for (auto& one : inputs_) one = inputs_[0];
    }
  }

  std::uint32_t wrong(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return wrong_elements(Work{operation_, count_, block_, inputs_[r].data(), outputs_[r].data()}, rank, ranks_);
  }
  std::vector<float>& result(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return operation_ == Operation::broadcast ? inputs_[r] : outputs_[r];
  }

 private:
  void perform(int rank) {
    std::vector<float>& out = outputs_[static_cast<std::size_t>(rank)];
    const std::size_t begin = static_cast<std::size_t>(rank) * block_;
    const auto input = [&](std::size_t owner, std::size_t i) { return inputs_[owner][i]; };
    const auto sum = [&](std::size_t i) {
      float total = 0;
      for (const auto& one : inputs_) total += one[i];
      return total;
    };
    for (std::size_t i = 0; i < count_; ++i) {
      const std::size_t owner = i / block_;
      switch (operation_) {
        case Operation::all_reduce:
        case Operation::all_reduce_in_place:
        case Operation::reduce: out[i] = sum(i); break;
        case Operation::reduce_scatter:
          if (i < block_) out[i] = sum(begin + i);
          break;
        case Operation::all_gather:
        case Operation::gather: out[i] = input(owner, i % block_); break;
        case Operation::all_to_all: out[i] = input(owner, begin + i % block_); break;
        case Operation::scatter:
          if (i < block_) out[i] = input(0, begin + i);
          break;
        case Operation::send_recv: out[i] = input(0, i); break;
        case Operation::exchange: out[i] = input(static_cast<std::size_t>((rank + ranks_ - 1) % ranks_), i); break;
        default: break;
      }
    }
  }

  Operation operation_;
  int ranks_;
  std::size_t block_, count_;
  std::vector<std::vector<float>> inputs_, outputs_;
};

}  // namespace

TEST_CASE("right results pass, and one wrong element is counted") {
  for (int one = 0; one < operations; ++one) {
    const auto operation = static_cast<Operation>(one);
    if (operation == Operation::barrier) continue;
    for (const int ranks : {2, 3, 8}) {
      for (const std::size_t block : {1U, 5U, 40U}) {
        Model model(operation, ranks, block);
        for (int rank = 0; rank < ranks; ++rank) CHECK(model.wrong(rank) == 0);
        const int receiver = operation == Operation::send_recv ? 1 : 0;
        model.result(receiver)[0] += 1;
        CHECK_MESSAGE(model.wrong(receiver) == 1, name_of(operation));
      }
    }
  }
}

TEST_CASE("sums are exact") {
  for (const int ranks : {2, 8, 64}) {
    for (std::size_t i = 0; i < 30; ++i) {
      float total = 0;
      for (int rank = 0; rank < ranks; ++rank) total += value_of(rank, i);
      CHECK(total == sum_of(ranks, i));
    }
  }
}
