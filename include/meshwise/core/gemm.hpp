// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "meshwise/core/detail/plain_gemm.hpp"
#include "meshwise/core/error.hpp"

namespace meshwise {

/// One matrix product on row-major local storage: C = alpha * op(A) * op(B) + beta * C.
///
/// op(A) is m x k: stored m x k, or k x m when `transpose_a`; op(B) is k x n: stored k x n, or n x k when
/// `transpose_b`; C is m x n. A leading dimension is the distance between two stored rows, in elements: at least the
/// length of a stored row. Any of m, n, k may be zero. C is not read when beta is zero, A and B are not read when
/// alpha or k is. C must not overlap A or B.
template <class T>
struct GemmCall {
  bool transpose_a = false;
  bool transpose_b = false;
  std::ptrdiff_t m = 0;
  std::ptrdiff_t n = 0;
  std::ptrdiff_t k = 0;
  T alpha = T(1);
  const T* a = nullptr;
  std::ptrdiff_t lda = 1;
  const T* b = nullptr;
  std::ptrdiff_t ldb = 1;
  T beta = T(0);
  T* c = nullptr;
  std::ptrdiff_t ldc = 1;
};

/// A back end for matrix products, as a table of functions: core headers hold a pointer to one and include none.
///
/// Each function runs on the calling thread alone, may be called from many threads at once and has finished when it
/// returns. Lifetime: the tables of the library are constants that live as long as the program.
struct Gemm {
  void (*f32)(const GemmCall<float>&) = nullptr;
  void (*f64)(const GemmCall<double>&) = nullptr;
  const char* name = "";

  void operator()(const GemmCall<float>& call) const { f32(call); }
  void operator()(const GemmCall<double>& call) const { f64(call); }
};

namespace detail {

/// Refuses a call whose sizes cannot be meant; costs a few comparisons.
template <class T>
void check_gemm(const char* operation, const GemmCall<T>& call) {
  const auto size = [operation](const char* name, std::ptrdiff_t value) {
    if (value < 0) {
      fail(operation, std::string(name) + " >= 0", std::string(name) + " = " + std::to_string(value),
           "pass sizes in elements");
    }
  };
  const auto leading = [operation](const char* name, std::ptrdiff_t value, std::ptrdiff_t row) {
    if (value < (row < 1 ? 1 : row)) {
      fail(operation, std::string(name) + " >= max(1, " + std::to_string(row) + "), the length of a stored row",
           std::string(name) + " = " + std::to_string(value), "storage is row-major");
    }
  };
  size("m", call.m);
  size("n", call.n);
  size("k", call.k);
  leading("lda", call.lda, call.transpose_a ? call.m : call.k);
  leading("ldb", call.ldb, call.transpose_b ? call.k : call.n);
  leading("ldc", call.ldc, call.n);
}

template <class T>
void plain_gemm_call(const GemmCall<T>& call) {
  check_gemm("plain_gemm", call);
  const GemmView<const T> a{call.a, call.transpose_a ? 1 : call.lda, call.transpose_a ? call.lda : 1};
  const GemmView<const T> b{call.b, call.transpose_b ? 1 : call.ldb, call.transpose_b ? call.ldb : 1};
  gemm_strided<T>(best_gemm_target(), call.m, call.n, call.k, call.alpha, a, b, call.beta, {call.c, call.ldc, 1});
}

}  // namespace detail

/// The library's own matrix product: needs nothing but the headers.
///
/// Packed panels and a register tile, for the instruction set found at run time (baseline, AVX2 with FMA, AVX-512).
/// Cost: 2mnk operations; it allocates at most about 1.3 MiB for packed panels and frees it before it returns.
/// Deterministic: an element of C depends only on its row of op(A), its column of op(B), k, alpha and its old value,
/// not on m, n, the storage order or the alignment, so a product split by rows or columns has the same bits. The bits
/// do depend on the instruction set (fused multiply-add or not).
/// Errors: Error with invalid_argument for negative sizes or a leading dimension shorter than a row.
/// Source: K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008.
template <class = void>  // so that only programs that use it pay for it
const Gemm& plain_gemm() {
  static constexpr Gemm table{&detail::plain_gemm_call<float>, &detail::plain_gemm_call<double>, "plain"};
  return table;
}

}  // namespace meshwise
