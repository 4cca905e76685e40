// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/error.hpp"

namespace meshwise::detail {

/// The most labels an operand may have.
inline constexpr int max_labels = 8;

/// The labels of a strided local array: for each a name (any small integer), its extent and its stride in elements.
struct Labels {
  struct Label {
    int name = 0;
    std::ptrdiff_t extent = 0;
    std::ptrdiff_t stride = 0;
  };
  Label labels[max_labels];
  int count = 0;

  Labels& add(int name, std::ptrdiff_t extent, std::ptrdiff_t stride) {
    if (count == max_labels) {
      fail("contract", "at most " + std::to_string(max_labels) + " dims", "one more", "merge dims before contracting");
    }
    labels[count++] = {name, extent, stride};
    return *this;
  }
  const Label* begin() const { return labels; }
  const Label* end() const { return labels + count; }
};

/// A set of labels that behaves as one: an extent, and a stride in each operand (zero where it does not occur).
struct EinsumAxis {
  std::ptrdiff_t extent = 1;
  std::ptrdiff_t a = 0;
  std::ptrdiff_t b = 0;
  std::ptrdiff_t c = 0;
};

/// Operands that are copied into dense workspace, as a set of bits.
enum EinsumPack : unsigned { pack_none = 0, pack_a = 1, pack_b = 2, pack_c = 4 };

/// How a contraction runs: `loops` around a matrix product, or around a multiply-add when `products` is false.
///
/// Loops over labels of C come first; the sums follow from `first_sum` on, innermost, so that they accumulate into a C
/// that is still in cache. Strides are those of the packed copy for a packed operand.
struct EinsumPlan {
  static constexpr int capacity = 2 * max_labels;
  EinsumAxis loops[capacity];
  int count = 0;
  int first_sum = 0;
  bool products = false;
  EinsumAxis m, n, k;
  bool transpose_a = false;  ///< A is stored k x m
  bool transpose_b = false;  ///< B is stored n x k
  bool transpose_c = false;  ///< C is stored n x m
  std::ptrdiff_t lda = 1;
  std::ptrdiff_t ldb = 1;
  std::ptrdiff_t ldc = 1;
  unsigned packed = pack_none;
  Labels dense_a, dense_b, dense_c;  ///< of the packed copies, outermost label first
  double cost = 0;                   ///< estimate, in nanoseconds
};

/// What things cost on one core, in nanoseconds: rough, they only rank a call against its arithmetic and a copy.
struct EinsumCosts {
  double multiply = 0.025;  ///< a multiply-add of a matrix product
  double touch = 0.1;       ///< an element that a matrix product reads or writes
  double start = 100;       ///< a matrix product, however small
  double pack = 1;          ///< an element of a strided copy
  double loop = 1;          ///< a multiply-add of the plain loops
};

/// Sorts a few values, keeping equal ones in order; nothing is allocated.
template <class T, class Before>
void sort_few(T* values, int count, Before before) {
  for (int i = 1; i < count; ++i) {
    const T value = values[i];
    int at = i;
    for (; at > 0 && before(value, values[at - 1]); --at) values[at] = values[at - 1];
    values[at] = value;
  }
}

}  // namespace meshwise::detail
