// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "meshwise/schedule/contract.hpp"
#include "meshwise/schedule/generator.hpp"

namespace meshwise::test {

/// Every shape on `ranks` ranks that the contract allows: all operations but exchange (which needs routes), all roots,
/// in and out of place.
inline std::vector<Shape> all_shapes(int ranks) {
  std::vector<Shape> shapes;
  for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
                                    Operation::broadcast, Operation::all_to_all, Operation::reduce, Operation::gather,
                                    Operation::scatter, Operation::inclusive_scan, Operation::exclusive_scan}) {
    for (const bool in_place : {false, true}) {
      const int roots = rooted(operation) ? ranks : 1;
      for (int root = 0; root < roots; ++root) {
        const Shape shape{operation, ranks, root, in_place};
        if (valid(shape)) shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

inline std::string describe(const Shape& shape) {
  return std::string(operation_name(shape.operation)) + (shape.in_place ? " in place" : "") + " on " +
         std::to_string(shape.ranks) + " ranks, root " + std::to_string(shape.root);
}

}  // namespace meshwise::test
