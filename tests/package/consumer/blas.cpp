// SPDX-License-Identifier: Apache-2.0
#include <meshwise/blas/gemm.hpp>

// The component's header compiles and its library links.
int main() { return meshwise::blas::one_thread_per_rank() || meshwise::blas_gemm().name != nullptr ? 0 : 1; }
