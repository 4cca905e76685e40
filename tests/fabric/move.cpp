// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/move.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

using namespace meshwise;

namespace {

/// Regions per (rank, buffer), one slot each.
struct Table {
  std::array<Region, 4> input;
  std::array<Region, 4> output;
};

Region look_up(const void* context, const Shape&, Buffer buffer, int rank, int) {
  const auto& table = *static_cast<const Table*>(context);
  return (buffer == Buffer::input ? table.input : table.output)[static_cast<std::size_t>(rank)];
}

/// Index of element i of a region.
std::size_t index(const Region& region, std::size_t i) {
  return region.offset + i / region.run * region.stride + i % region.run;
}

}  // namespace

TEST_CASE("pieces with different strides are walked in step") {
  // 24 elements everywhere: as 24, 6 x 4, 4 x 6, 2 x 12, 24 x 1.
  const Region shapes[] = {{3, 24, 0, 1}, {1, 4, 7, 6}, {0, 6, 6, 4}, {2, 12, 20, 2}, {5, 1, 3, 24}};
  const std::size_t room = 100;
  for (std::size_t first = 0; first < 5; ++first) {
    for (std::size_t second = 0; second < 5; ++second) {
      for (std::size_t third = 0; third < 5; ++third) {
        for (int sources = 1; sources <= 2; ++sources) {
          Table table;
          table.input = {{shapes[first], shapes[second], {}, {}}};
          table.output = {{{}, {}, shapes[third], shapes[first]}};
          std::vector<std::vector<std::int32_t>> memory(4, std::vector<std::int32_t>(room, -7));
          for (std::size_t rank = 0; rank < 2; ++rank) {
            for (std::size_t i = 0; i < room; ++i) memory[rank][i] = static_cast<std::int32_t>(1000 * rank + i);
          }
          Call call;
          call.shape.ranks = 4;
          call.element_size = 4;
          call.kernel = reduce_kernel<std::int32_t, Sum>();
          call.regions = Regions{&look_up, &table};
          Move move;
          move.by = 0;
          for (int rank = 0; rank < sources; ++rank) move.from.push_back(Piece{rank, Buffer::input, 0, 1});
          move.to = {Piece{2, Buffer::output, 0, 1}, Piece{3, Buffer::output, 0, 1}};
          detail::Mover mover;
          mover.begin(call, detail::MoveOptions{});
          std::array<detail::Addresses, 4> addresses;
          for (std::size_t rank = 0; rank < 4; ++rank) {
            auto* const bytes = reinterpret_cast<std::byte*>(memory[rank].data());
            addresses[rank] = {bytes, bytes, nullptr, nullptr};
          }
          mover.perform(
              move, 0, [&](int rank) { return addresses[static_cast<std::size_t>(rank)]; }, true);
          CHECK(mover.moved() == static_cast<std::uint64_t>(sources - 1 + 2) * 24 * 4);

          for (const std::size_t rank : {2U, 3U}) {
            std::vector<std::int32_t> wanted(room, -7);
            for (std::size_t i = 0; i < 24; ++i) {
              std::int32_t sum = static_cast<std::int32_t>(index(table.input[0], i));
              if (sources == 2) sum += 1000 + static_cast<std::int32_t>(index(table.input[1], i));
              wanted[index(table.output[rank], i)] = sum;
            }
            CHECK(memory[rank] == wanted);
          }
        }
      }
    }
  }
}

TEST_CASE("empty pieces touch nothing, and null is a fine address for them") {
  Table table{};
  Call call;
  call.shape.ranks = 4;
  call.regions = Regions{&look_up, &table};
  detail::Mover mover;
  mover.begin(call, detail::MoveOptions{});
  const Move move{0, 0, {Piece{1, Buffer::input, 0, 1}}, {Piece{0, Buffer::output, 0, 1}}};
  mover.perform(
      move, 0, [](int) { return detail::Addresses{}; }, false);
  CHECK(mover.moved() == 0);
}

TEST_CASE("scratch slots are as large as the largest block, in whole lines unless all are equal") {
  Table table{};
  table.output = {{{0, 1, 0, 1}, {1, 50, 0, 1}, {51, 3, 0, 1}, {}}};
  Call call;
  call.shape = Shape{Operation::reduce_scatter, 4, 0, false};
  call.element_size = 4;
  call.regions = Regions{&look_up, &table};
  CHECK(detail::scratch_layout(call, 4, 1).slot == 256);
  // Lanes cut 50 elements as 16, 16 and 18: each has a place of its own, whichever block is there.
  CHECK(detail::scratch_layout(call, 4, 3).lane == 128);
  CHECK(detail::scratch_layout(call, 4, 3).slot == 3 * 128);
  table.output = {};
  CHECK(detail::scratch_layout(call, 4, 1).slot == 0);
  table.output = {{{0, 5, 0, 1}, {5, 5, 0, 1}, {10, 1, 2, 5}, {20, 5, 0, 1}}};
  CHECK(detail::scratch_layout(call, 4, 1).slot == 20);
  CHECK(detail::scratch_layout(call, 4, 3).slot == 20);
  CHECK(detail::scratch_layout(call, 4, 3).lane == 0);
}

namespace {

/// Slots of 5 elements in a row on rank 0; on rank 1 with a gap after slot 1.
Region rows(const void*, const Shape&, Buffer, int rank, int slot) {
  const auto at = static_cast<std::size_t>(slot);
  return Region{at * 5 + (rank == 1 && slot > 1 ? 2 : 0), 5, 5, 1};
}

std::size_t kernel_calls = 0;

void counting(std::size_t count, const void* const* from, int sources, void* const* to, int destinations,
              bool streaming) {
  ++kernel_calls;
  reduce_kernel<std::int32_t, Sum>()(count, from, sources, to, destinations, streaming);
}

/// Combines slots 0 to 3 of two ranks into scratch and counts the calls of the kernel.
std::size_t calls_for(int other, int lanes) {
  std::vector<std::vector<std::int32_t>> memory(4, std::vector<std::int32_t>(40));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t i = 0; i < 40; ++i) memory[rank][i] = static_cast<std::int32_t>(100 * rank + i);
  }
  Call call;
  call.shape.ranks = 4;
  call.element_size = 4;
  call.kernel = &counting;
  call.regions.locate = &rows;
  const Move move{0, 0, {{0, Buffer::input, 0, 4}, {other, Buffer::input, 0, 4}}, {{3, Buffer::scratch, 0, 4}}};
  detail::Mover mover;
  detail::MoveOptions options;
  options.scratch_slot = 20;
  options.lanes = lanes;
  mover.begin(call, options);
  kernel_calls = 0;
  const auto addresses = [&](int rank) {
    auto* const bytes = reinterpret_cast<std::byte*>(memory[static_cast<std::size_t>(rank)].data());
    return detail::Addresses{bytes, bytes, bytes, nullptr};
  };
  for (int lane = 0; lane < lanes; ++lane) mover.perform(move, lane, addresses, true);
  bool right = true;
  for (std::size_t i = 0; i < 20; ++i) {
    const std::size_t there = i + (other == 1 && i >= 10 ? 2 : 0);
    right = right && memory[3][i] == static_cast<std::int32_t>(i + 100 * static_cast<std::size_t>(other) + there);
  }
  CHECK(right);
  CHECK(mover.moved() == 2 * 20 * 4);
  return kernel_calls;
}

}  // namespace

TEST_CASE("slots that follow each other in every piece are one call of the kernel") {
  CHECK(calls_for(2, 1) == 1);
  CHECK(calls_for(1, 1) == 2);
  CHECK(calls_for(2, 3) == 1);  // a slot is less than a line: one lane has it all
}

TEST_CASE("pieces that are one and the same part of a vector, and pieces that are not") {
  // Slot s of every buffer is elements [5 s, 5 s + 5).
  const auto locate = [](const void*, const Shape&, Buffer, int, int slot) {
    return Region{static_cast<std::size_t>(slot) * 5, 5, 5, 1};
  };
  for (const bool contiguous : {true, false}) {  // false: the general way
    for (const int lanes : {1, 2}) {
      for (const int other : {1, 2}) {
        for (const Buffer last : {Buffer::output, Buffer::scratch}) {
          std::array<std::array<std::int32_t, 15>, 3> input{}, output{}, scratch{};
          std::array<detail::Addresses, 3> addresses;
          for (std::size_t rank = 0; rank < 3; ++rank) {
            for (std::size_t i = 0; i < 15; ++i) input[rank][i] = static_cast<std::int32_t>(100 * rank + i);
            addresses[rank] = {reinterpret_cast<const std::byte*>(input[rank].data()),
                               reinterpret_cast<std::byte*>(output[rank].data()),
                               reinterpret_cast<std::byte*>(scratch[rank].data()), nullptr};
          }
          Call call;
          call.shape = Shape{Operation::all_reduce, 3, 0, false};
          call.element_size = 4;
          call.count = 15;
          call.kernel = reduce_kernel<std::int32_t, Sum>();
          call.regions = Regions{locate, nullptr, 0, contiguous};
          detail::Mover mover;
          mover.begin(call, detail::MoveOptions{20, lanes});
          const Move move{0,
                          1,
                          {Piece{0, Buffer::input, 1, 1}, Piece{1, Buffer::input, other, 1}},
                          {Piece{2, Buffer::output, 1, 1}, Piece{0, last, 1, 1}}};
          for (int lane = 0; lane < lanes; ++lane) {
            mover.perform(
                move, lane, [&](int rank) { return addresses[static_cast<std::size_t>(rank)]; }, false);
          }
          CHECK(mover.moved() == 2 * 5 * 4);
          std::array<std::int32_t, 15> wanted{};
          for (std::size_t i = 5; i < 10; ++i) {
            wanted[i] = input[0][i] + input[1][i + static_cast<std::size_t>(other - 1) * 5];
          }
          CHECK(output[2] == wanted);
          CHECK((last == Buffer::output ? output : scratch)[0] == wanted);
          CHECK(output[1] == std::array<std::int32_t, 15>{});
        }
      }
    }
  }
}
