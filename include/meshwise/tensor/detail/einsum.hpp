// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "meshwise/core/element.hpp"
#include "meshwise/core/gemm.hpp"
#include "meshwise/tensor/detail/einsum_planner.hpp"

namespace meshwise::detail {

/// Where packed copies live. Without functions, on the heap. Memory must be aligned for any element.
struct EinsumWorkspace {
  void* (*allocate)(void* self, std::size_t bytes) = nullptr;
  void (*release)(void* self, void* memory, std::size_t bytes) = nullptr;
  void* self = nullptr;
};

/// What a contraction did.
struct EinsumWork {
  std::int64_t products = 0;     ///< calls of the matrix product
  std::size_t packed_bytes = 0;  ///< workspace for packed copies
};

/// Owns one packed copy.
template <class T>
class EinsumCopy {
 public:
  EinsumCopy(const EinsumWorkspace& workspace, std::size_t count, EinsumWork& work)
      : workspace_(workspace), bytes_(count * sizeof(T)) {
    if (bytes_ == 0) return;
    memory_ = workspace.allocate != nullptr ? workspace.allocate(workspace.self, bytes_) : ::operator new(bytes_);
    work.packed_bytes += bytes_;
  }
  EinsumCopy(const EinsumCopy&) = delete;
  EinsumCopy& operator=(const EinsumCopy&) = delete;
  ~EinsumCopy() {
    if (memory_ == nullptr) return;
    if (workspace_.release != nullptr) {
      workspace_.release(workspace_.self, memory_, bytes_);
    } else if (workspace_.allocate == nullptr) {
      ::operator delete(memory_);
    }
  }
  T* data() const { return static_cast<T*>(memory_); }

 private:
  EinsumWorkspace workspace_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

/// Calls body(offset_a, offset_b, offset_c, first) for every position of some loops; `first` tells that all loops
/// from `first_sum` on are at their beginning.
template <class Body>
void for_each_position(const EinsumAxis* loops, int count, int first_sum, const Body& body) {
  std::ptrdiff_t position[EinsumPlan::capacity] = {};
  std::ptrdiff_t a = 0, b = 0, c = 0;
  int moving_sums = 0;  // how many of the sums are past their beginning
  for (int i = 0; i < count; ++i) {
    if (loops[i].extent == 0) return;
  }
  for (;;) {
    body(a, b, c, moving_sums == 0);
    int at = count - 1;
    for (; at >= 0; --at) {
      const EinsumAxis& loop = loops[at];
      if (position[at] + 1 < loop.extent) {
        if (at >= first_sum && position[at] == 0) ++moving_sums;
        ++position[at];
        a += loop.a;
        b += loop.b;
        c += loop.c;
        break;
      }
      if (at >= first_sum && position[at] > 0) --moving_sums;
      a -= position[at] * loop.a;
      b -= position[at] * loop.b;
      c -= position[at] * loop.c;
      position[at] = 0;
    }
    if (at < 0) return;
  }
}

/// Visits the elements of a strided array in the order of its dense copy: visit(array offset, copy offset).
template <class Visit>
void for_each_copied(const Labels& strided, const Labels& dense, const Visit& visit) {
  EinsumAxis loops[max_labels];
  int count = 0;
  EinsumAxis inner;
  for (const Labels::Label& to : dense) {
    for (const Labels::Label& from : strided) {
      if (from.name != to.name) continue;
      if (count > 0 && loops[count - 1].a == to.extent * from.stride) {
        loops[count - 1] = {loops[count - 1].extent * to.extent, from.stride, to.stride, 0};
      } else {
        loops[count++] = {to.extent, from.stride, to.stride, 0};
      }
    }
  }
  if (count > 0) inner = loops[--count];
  for_each_position(loops, count, count, [&](std::ptrdiff_t from, std::ptrdiff_t to, std::ptrdiff_t, bool) {
    for (std::ptrdiff_t i = 0; i < inner.extent; ++i) visit(from + i * inner.a, to + i * inner.b);
  });
}

inline std::size_t dense_size(const Labels& dense) {
  std::size_t size = 1;
  for (const Labels::Label& label : dense) size *= static_cast<std::size_t>(label.extent);
  return size;
}

/// Runs a plan on elements of one type. `sum` is an accumulator type that converts from and to T.
template <class Sum, class T>
void run_loops(const EinsumPlan& plan, Sum alpha, const T* a, const T* b, Sum beta, T* c) {
  // The innermost sum runs here without the odometer; without sums there is one product.
  const EinsumAxis inner = plan.count > plan.first_sum ? plan.loops[plan.count - 1] : EinsumAxis{};
  const int sums = plan.count > plan.first_sum ? plan.count - 1 - plan.first_sum : 0;
  for_each_position(plan.loops, plan.first_sum, plan.first_sum,
                    [&](std::ptrdiff_t at_a, std::ptrdiff_t at_b, std::ptrdiff_t at_c, bool) {
                      Sum sum = Sum(0);
                      for_each_position(plan.loops + plan.first_sum, sums, sums,
                                        [&](std::ptrdiff_t more_a, std::ptrdiff_t more_b, std::ptrdiff_t, bool) {
                                          const T* left = a + at_a + more_a;
                                          const T* right = b + at_b + more_b;
                                          for (std::ptrdiff_t i = 0; i < inner.extent; ++i) {
                                            sum += static_cast<Sum>(left[i * inner.a]) *
                                                   static_cast<Sum>(right[i * inner.b]);
                                          }
                                        });
                      const Sum old = beta == Sum(0) ? Sum(0) : beta * static_cast<Sum>(c[at_c]);
                      c[at_c] = static_cast<T>(alpha * sum + old);
                    });
}

template <class T>
std::int64_t run_products(const Gemm& gemm, const EinsumPlan& plan, T alpha, const T* a, const T* b, T beta, T* c) {
  GemmCall<T> call;
  call.m = plan.m.extent;
  call.n = plan.n.extent;
  call.k = plan.k.extent;
  call.transpose_a = plan.transpose_a;
  call.transpose_b = plan.transpose_b;
  call.alpha = alpha;
  call.lda = plan.lda;
  call.ldb = plan.ldb;
  call.ldc = plan.ldc;
  if (plan.transpose_c) {  // C^T = B^T A^T
    call.m = plan.n.extent;
    call.n = plan.m.extent;
    call.transpose_a = !plan.transpose_b;
    call.transpose_b = !plan.transpose_a;
    call.lda = plan.ldb;
    call.ldb = plan.lda;
  }
  std::int64_t calls = 0;
  for_each_position(plan.loops, plan.count, plan.first_sum,
                    [&](std::ptrdiff_t at_a, std::ptrdiff_t at_b, std::ptrdiff_t at_c, bool first) {
                      call.a = plan.transpose_c ? b + at_b : a + at_a;
                      call.b = plan.transpose_c ? a + at_a : b + at_b;
                      call.c = c + at_c;
                      call.beta = first ? beta : T(1);
                      gemm(call);
                      ++calls;
                    });
  return calls;
}

/// The type in which elements are multiplied and summed: integers wrap, so they are summed without sign.
template <class T>
using einsum_sum_t = std::conditional_t<std::is_integral_v<T>, std::uint64_t, accumulate_t<T>>;

/// C = alpha * (sum of A * B over the labels that C lacks) + beta * C, on strided local arrays.
///
/// Each label occurs in at least two of A, B, C; the names are only compared. A label in A and B but not in C is
/// summed, one in all three is a batch. Extents may be zero (an empty sum leaves beta * C), strides anything that keeps
/// the elements of C distinct. C is not read when beta is zero. C must not overlap A or B.
/// float and double run as few large matrix products; bf16 and fp16 are widened into workspace, summed in fp32 and
/// rounded once; integers wrap.
/// Cost: planning takes about a microsecond and allocates nothing; an operand without a usable unit stride (any 16-bit
/// one) is packed into `workspace`, which is released before the return. Runs on the calling thread.
/// Returns the number of matrix products and the bytes packed.
/// Errors: Error with invalid_argument for labels that do not fit together.
template <class T>
EinsumWork einsum(const Gemm& gemm, std::type_identity_t<accumulate_t<T>> alpha, const T* a, const Labels& labels_a,
                  const T* b, const Labels& labels_b, std::type_identity_t<accumulate_t<T>> beta, T* c,
                  const Labels& labels_c, const EinsumWorkspace& workspace = {}, const EinsumCosts& costs = {}) {
  constexpr bool native = std::is_same_v<T, float> || std::is_same_v<T, double>;
  constexpr bool widened = !native && !std::is_integral_v<T>;
  const EinsumPlanner planner(labels_a, labels_b, labels_c, costs);
  EinsumWork work;
  if (planner.result_size() == 0) return work;
  if constexpr (std::is_integral_v<T>) {
    using Sum = einsum_sum_t<T>;
    run_loops<Sum, T>(planner.plan(pack_none, false), static_cast<Sum>(alpha), a, b, static_cast<Sum>(beta), c);
  } else if (planner.sum_size() == 0) {
    using Sum = einsum_sum_t<T>;
    run_loops<Sum, T>(planner.plan(pack_none, false), alpha, a, b, beta, c);
  } else {
    using Wide = accumulate_t<T>;
    const EinsumPlan plan = planner.plan(widened ? pack_a | pack_b | pack_c : pack_none, true);
    const bool copies_a = (plan.packed & pack_a) != 0;
    const bool copies_b = (plan.packed & pack_b) != 0;
    const bool copies_c = (plan.packed & pack_c) != 0;
    const EinsumCopy<Wide> copy_a(workspace, copies_a ? dense_size(plan.dense_a) : 0, work);
    const EinsumCopy<Wide> copy_b(workspace, copies_b ? dense_size(plan.dense_b) : 0, work);
    const EinsumCopy<Wide> copy_c(workspace, copies_c ? dense_size(plan.dense_c) : 0, work);
    const auto fill = [](const T* from, const Labels& strided, const Labels& dense, Wide* to) {
      for_each_copied(strided, dense, [=](std::ptrdiff_t i, std::ptrdiff_t j) { to[j] = static_cast<Wide>(from[i]); });
    };
    if (copies_a) fill(a, labels_a, plan.dense_a, copy_a.data());
    if (copies_b) fill(b, labels_b, plan.dense_b, copy_b.data());
    const Wide* left = copy_a.data();
    const Wide* right = copy_b.data();
    Wide* result = copy_c.data();
    if constexpr (native) {
      if (!copies_a) left = a;
      if (!copies_b) right = b;
      if (!copies_c) result = c;
    }
    const Wide old = copies_c ? Wide(0) : beta;
    if (plan.products) {
      work.products = run_products<Wide>(gemm, plan, alpha, left, right, old, result);
    } else {
      run_loops<Wide, Wide>(plan, alpha, left, right, old, result);
    }
    if (copies_c) {
      const Wide* from = copy_c.data();
      for_each_copied(labels_c, plan.dense_c, [=](std::ptrdiff_t i, std::ptrdiff_t j) {
        c[i] = static_cast<T>(beta == Wide(0) ? from[j] : from[j] + beta * static_cast<Wide>(c[i]));
      });
    }
  }
  return work;
}

}  // namespace meshwise::detail
