// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cblas.h>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "meshwise/core/error.hpp"
#include "meshwise/core/gemm.hpp"

namespace meshwise {

namespace detail {

// Weak, so that the program also links with a CBLAS that has no threads of its own: the address is null there.
// NOLINTBEGIN(readability-redundant-declaration): some cblas.h declare them, as strong ones.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int count);
[[gnu::weak]] int openblas_get_num_threads(void);
[[gnu::weak]] char* openblas_get_corename(void);
}
// NOLINTEND(readability-redundant-declaration)

template <class T>
void blas_gemm_call(const GemmCall<T>& call) {
  check_gemm("blas_gemm", call);
  if (call.m == 0 || call.n == 0) return;
  const auto narrow = [](const char* name, std::ptrdiff_t value) {
    // CBLAS with 64-bit integers keeps its prototypes, so the smallest integer it may have is what counts.
    if (value > std::numeric_limits<int>::max()) {
      fail("blas_gemm", std::string(name) + " <= " + std::to_string(std::numeric_limits<int>::max()),
           std::string(name) + " = " + std::to_string(value), "CBLAS has 32-bit sizes: use plain_gemm()");
    }
    return static_cast<int>(value);
  };
  const int m = narrow("m", call.m);
  const int n = narrow("n", call.n);
  const int k = narrow("k", call.k);
  const int lda = narrow("lda", call.lda);
  const int ldb = narrow("ldb", call.ldb);
  const int ldc = narrow("ldc", call.ldc);
  const CBLAS_TRANSPOSE a = call.transpose_a ? CblasTrans : CblasNoTrans;
  const CBLAS_TRANSPOSE b = call.transpose_b ? CblasTrans : CblasNoTrans;
  if constexpr (sizeof(T) == sizeof(float)) {
    cblas_sgemm(CblasRowMajor, a, b, m, n, k, call.alpha, call.a, lda, call.b, ldb, call.beta, call.c, ldc);
  } else {
    cblas_dgemm(CblasRowMajor, a, b, m, n, k, call.alpha, call.a, lda, call.b, ldb, call.beta, call.c, ldc);
  }
}

}  // namespace detail

/// Matrix products through CBLAS (OpenBLAS, BLIS, MKL, the reference library, ...).
///
/// Cost: that of the library; see blas::one_thread_per_rank for its threads. The bits are the library's.
/// Errors: Error with invalid_argument for bad sizes, and for sizes beyond the 32-bit integers of CBLAS.
inline const Gemm& blas_gemm() {
  static constexpr Gemm table{&detail::blas_gemm_call<float>, &detail::blas_gemm_call<double>, "blas"};
  return table;
}

namespace blas {

/// Makes each product run on the thread that calls it: ranks are the parallelism, and a pool shared by the ranks of
/// one process would serialise them.
///
/// Call it once before the ranks start; calling it from every rank is harmless. It acts on OpenBLAS and is process
/// wide; it does nothing when the program is linked with another library (set that library's own variable).
/// Returns whether products now run on one thread, as far as can be known.
inline bool one_thread_per_rank() {
  if (detail::openblas_set_num_threads == nullptr || detail::openblas_get_num_threads == nullptr) return false;
  if (detail::openblas_get_num_threads() != 1) detail::openblas_set_num_threads(1);
  return detail::openblas_get_num_threads() == 1;
}

/// The kernels that OpenBLAS chose for this processor, such as "SkylakeX"; empty for another library.
///
/// A release older than the processor may not know it and fall back to "Prescott" or "Generic", several times slower
/// than plain_gemm(): choose the back end by this, or set OPENBLAS_CORETYPE before the program starts.
inline const char* kernel_name() {
  return detail::openblas_get_corename == nullptr ? "" : detail::openblas_get_corename();
}

/// Whether the library's kernels are of this processor's time: false when OpenBLAS fell back to kernels without AVX2 on
/// a processor that has it. Libraries that do not tell are trusted.
inline bool fits_this_processor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    for (const char* old : {"Generic", "Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Sandybridge", "Atom",
                            "Barcelona", "Bobcat", "Bulldozer", "Piledriver", "Opteron_SSE3"}) {
      if (std::string_view(kernel_name()) == old) return false;
    }
  }
#endif
  return true;
}

/// blas_gemm() with one thread per rank, or plain_gemm() where the library does not know this processor.
inline const Gemm& best_gemm() {
  one_thread_per_rank();
  return fits_this_processor() ? blas_gemm() : plain_gemm();
}

}  // namespace blas

}  // namespace meshwise
