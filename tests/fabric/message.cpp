// SPDX-License-Identifier: Apache-2.0
#include "meshwise/fabric/message.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "meshwise/collective/all_reduce.hpp"
#include "meshwise/collective/reduce_scatter.hpp"
#include "meshwise/fabric/thread/launch.hpp"

using namespace meshwise;

namespace {

/// A column block of a matrix per slot, so that every piece is strided.
struct Columns {
  std::size_t rows = 0;
  std::size_t width = 0;
};

Region column_block(const void* context, const Shape& shape, Buffer, int, int slot) {
  const auto& columns = *static_cast<const Columns*>(context);
  return Region{static_cast<std::size_t>(slot) * columns.width, columns.width,
                columns.width * static_cast<std::size_t>(shape.ranks), columns.rows};
}

/// What every rank ends up with, bit for bit.
std::vector<std::vector<float>> run(int ranks, bool messages, Operation operation, Algorithm algorithm,
                                    const Columns& columns) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  LaunchOptions options;
  options.messages = messages;
  launch(ranks, options, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::size_t size = columns.rows * columns.width * static_cast<std::size_t>(ranks);
    std::vector<float> in(size);
    std::vector<float>& out = results[rank];
    out.assign(size, -1.0F);
    for (std::size_t i = 0; i < size; ++i) in[i] = std::sin(static_cast<float>(i * 13 + rank * 7));
    Call call;
    call.verb = "columns";
    call.shape.operation = operation;
    call.element = ElementKind::f32;
    call.element_size = 4;
    call.count = size;
    call.algorithm = algorithm;
    call.input = in.data();
    call.output = out.data();
    call.regions = Regions{&column_block, &columns};
    if (operation == Operation::all_reduce) {
      call.reduction = ReductionKind::sum;
      call.kernel = reduce_kernel<float, Sum>();
    }
    communicator.run(call);
  });
  return results;
}

}  // namespace

TEST_CASE("messages and memory give the same bits, strided pieces included") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const Operation operation : {Operation::all_reduce, Operation::all_to_all, Operation::broadcast}) {
      for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
        for (const Columns& columns : {Columns{5, 3}, Columns{0, 4}, Columns{1, 1}, Columns{30, 100}}) {
          if (columns.rows == 30 && ranks % 3 != 0) continue;
          const auto memory = run(ranks, false, operation, algorithm, columns);
          const auto messages = run(ranks, true, operation, algorithm, columns);
          CHECK(memory == messages);
        }
      }
    }
  }
}

TEST_CASE("a lowered collective counts its messages and bytes at the receiver") {
  LaunchOptions options;
  options.messages = true;
  launch(4, options, [](Communicator& communicator) {
    std::vector<float> data(400);
    std::vector<float> out(400);
    for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring}) {
      const Traffic before = communicator.traffic();
      all_reduce(communicator, data, out, CollectiveOptions{algorithm, -1});
      const Traffic traffic = communicator.traffic() - before;
      // Three blocks to combine and three results, each of a hundred elements.
      CHECK(traffic == Traffic{1, 6, 6 * 400, 6 * 400});
    }
  });
}
