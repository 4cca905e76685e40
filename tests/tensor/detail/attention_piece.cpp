// SPDX-License-Identifier: Apache-2.0
#include "meshwise/tensor/detail/attention_piece.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace meshwise::detail {
namespace {

TEST_CASE("a product of strided matrices, transposed or not, added to what is there") {
  const std::vector<double> a{1, 2, 3, 4, 5, 6}, b{1, 0, 2, -1, 3, 1};
  std::vector<double> c{1, 1, 1, 1};
  const StridedMatrix<const double> left{a.data(), 3, 1}, right{b.data(), 2, 1};
  multiply<double>(plain_gemm(), 2, left, right, 1, StridedMatrix<double>{c.data(), 2, 1}, 2, 3, 2);
  CHECK(c == std::vector<double>{29, 3, 65, 3});
  multiply<double>(plain_gemm(), 1, right.transposed(), left.transposed(), 0,
                   StridedMatrix<double>{c.data(), 2, 1}.transposed(), 2, 3, 2);
  CHECK(c == std::vector<double>{14, 1, 32, 1});
}

}  // namespace
}  // namespace meshwise::detail
