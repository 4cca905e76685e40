// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshwise/collective/call.hpp"
#include "meshwise/collective/communicator.hpp"
#include "meshwise/core/split.hpp"
#include "meshwise/schedule/contract.hpp"

namespace calls {

using namespace meshwise;

using Values = std::vector<std::int64_t>;

/// Where slots lie: the vector is cut into as many parts as there are ranks; a buffer of one slot holds it alone.
inline Region region(const void* context, const Shape& shape, Buffer buffer, int rank, int slot) {
  const std::size_t count = *static_cast<const std::size_t*>(context);
  const bool input = buffer == Buffer::input;
  const Operation operation = shape.operation;
  const bool alone = input ? operation == Operation::all_gather || operation == Operation::gather
                           : operation == Operation::reduce_scatter || operation == Operation::scatter;
  const Range part = split(count, static_cast<std::size_t>(shape.ranks), static_cast<std::size_t>(alone ? rank : slot));
  return Region{alone ? 0 : part.begin, part.size, part.size, 1};
}

/// One operation on vectors of integers, out of place, as one rank sees it, with what it must give.
///
/// Lifetime: stays where it is, since `call` points into it. Ranks agree on everything but `rank`.
struct Case {
  Shape shape;
  int rank;
  std::size_t count;
  Values in;
  Values out;
  Values wanted;

  Case(Operation operation, int ranks, int root, std::size_t elements, int own_rank)
      : shape{operation, ranks, root, rooted(operation)}, rank(own_rank), count(elements) {
    // Equal blocks of which every rank can have a number of its own.
    if (operation == Operation::all_to_all) count = elements / 4 * static_cast<std::size_t>(ranks);
    in = input_of(rank);
    out.assign(size(Buffer::output, rank), -7);
    wanted = result();
    if (operation == Operation::broadcast && rank == root) out = in;
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Call call(const char* verb = "test") {
    Call result;
    result.verb = verb;
    result.shape = shape;
    result.element = ElementKind::i64;
    result.element_size = 8;
    result.count = count;
    result.input = shape.operation == Operation::broadcast ? out.data() : in.data();
    result.output = out.data();
    result.regions = Regions{&region, &count, 0};
    if (combines(shape.operation)) {
      result.reduction = ReductionKind::sum;
      result.kernel = reduce_kernel<std::int64_t, Sum>();
    }
    return result;
  }

  bool right() const { return out == wanted && in == input_of(rank); }

  std::string describe() const {
    return std::string(operation_name(shape.operation)) + " of " + std::to_string(count) + " on " +
           std::to_string(shape.ranks) + ", root " + std::to_string(shape.root) + ", rank " + std::to_string(rank);
  }

 private:
  std::size_t size(Buffer buffer, int of) const {
    const int slots = buffer == Buffer::input ? input_slots(shape, of) : output_slots(shape, of);
    std::size_t elements = 0;
    for (int slot = 0; slot < slots; ++slot) elements += region(&count, shape, buffer, of, slot).size();
    return elements;
  }

  Values input_of(int of) const {
    Values values(size(Buffer::input, of));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int64_t>(i * 37 + static_cast<std::size_t>(of) * 1000003);
    }
    return values;
  }

  /// The contract, slot by slot.
  Values result() const {
    Values values(size(Buffer::output, rank));
    std::size_t at = 0;
    for (int slot = 0; slot < output_slots(shape, rank); ++slot) {
      const int block = output_block(shape, rank, slot);
      const std::size_t length = region(&count, shape, Buffer::output, rank, slot).size();
      for (int from = 0; from < shape.ranks; ++from) {
        const bool takes_part =
            combines(shape.operation) ? from < contributors(shape, rank) : contributes(shape, block, from);
        if (!takes_part) continue;
        const Values all = input_of(from);
        for (int source = 0; source < input_slots(shape, from); ++source) {
          if (input_block(shape, from, source) != block) continue;
          const std::size_t offset = region(&count, shape, Buffer::input, from, source).offset;
          for (std::size_t i = 0; i < length; ++i) values[at + i] += all[offset + i];
        }
      }
      at += length;
    }
    return values;
  }
};

inline constexpr Operation operations[] = {
    Operation::all_reduce,     Operation::reduce_scatter, Operation::all_gather, Operation::broadcast,
    Operation::all_to_all,     Operation::reduce,         Operation::gather,     Operation::scatter,
    Operation::inclusive_scan, Operation::exclusive_scan};

}  // namespace calls
