// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "meshwise/core/detail/isa.hpp"
#include "meshwise/core/element.hpp"

namespace meshwise::detail {

/// Some floats or doubles that go through a loop together, as a vector of `Bytes`: a formula that is written once for
/// numbers works for it. What a compiler makes of a plain loop depends on its version and options and on the loop's
/// form, by a factor of five; here it does not.
///
/// Each operation is that of the element, so that the width does not change a bit. Copies are constructed, so that
/// packs go through memory where a call is not inlined: where a vector would be passed depends on the instruction set.
template <class A, std::size_t Bytes>
struct Pack {
  typedef A Vector __attribute__((vector_size(Bytes)));
  using Bit = std::conditional_t<sizeof(A) == 4, std::uint32_t, std::uint64_t>;
  typedef Bit Bits __attribute__((vector_size(Bytes)));
  using element = A;
  static constexpr std::size_t lanes = Bytes / sizeof(A);

  /// For each lane all bits or none.
  struct Mask {
    Bits bits;

    [[gnu::always_inline]] inline Mask(const Bits& b) : bits(b) {}
    [[gnu::always_inline]] inline Mask(const Mask& other) : bits(other.bits) {}
  };

  Vector v;

  Pack() = default;
  [[gnu::always_inline]] inline Pack(const Pack& other) : v(other.v) {}
  [[gnu::always_inline]] inline Pack& operator=(const Pack& other) {
    v = other.v;
    return *this;
  }
  [[gnu::always_inline]] inline Pack(A x) : v(x - Vector{}) {}
  [[gnu::always_inline]] inline explicit Pack(const Vector& x) : v(x) {}

  [[gnu::always_inline]] friend inline Pack operator+(const Pack& a, const Pack& b) { return Pack(a.v + b.v); }
  [[gnu::always_inline]] friend inline Pack operator-(const Pack& a, const Pack& b) { return Pack(a.v - b.v); }
  [[gnu::always_inline]] friend inline Pack operator*(const Pack& a, const Pack& b) { return Pack(a.v * b.v); }
  [[gnu::always_inline]] friend inline Pack operator/(const Pack& a, const Pack& b) { return Pack(a.v / b.v); }
  [[gnu::always_inline]] friend inline Pack operator-(const Pack& a) { return Pack(-a.v); }
  [[gnu::always_inline]] friend inline Mask operator<(const Pack& a, const Pack& b) { return Mask((Bits)(a.v < b.v)); }
  [[gnu::always_inline]] friend inline Mask operator>(const Pack& a, const Pack& b) { return Mask((Bits)(a.v > b.v)); }

  /// The first `count` lanes.
  [[gnu::always_inline]] static inline Mask first(std::size_t count) {
    Bits number;
#pragma GCC unroll 32
    for (std::size_t k = 0; k < lanes; ++k) number[k] = static_cast<Bit>(k);
    return Mask((Bits)(number < static_cast<Bit>(count < lanes ? count : lanes)));
  }
  [[gnu::always_inline]] friend inline Pack select(const Mask& condition, const Pack& a, const Pack& b) {
    return Pack((Vector)(((Bits)a.v & condition.bits) | ((Bits)b.v & ~condition.bits)));
  }
  /// b where a < b, else a; so a where b is NaN.
  [[gnu::always_inline]] friend inline Pack larger(const Pack& a, const Pack& b) { return select(a < b, b, a); }
};

/// Copies the first `count` of fewer than Most elements, Most a power of two, without a call.
template <std::size_t Most, class E>
[[gnu::always_inline]] inline void copy_few(E* to, const E* from, std::size_t count) {
#pragma GCC unroll 8
  for (std::size_t run = Most / 2; run > 0; run /= 2) {
    if ((count & run) == 0) continue;
    std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), run * sizeof(E));
    to += run;
    from += run;
  }
}

/// Elements, as their accumulate type.
template <class P, class E>
[[gnu::always_inline]] inline P load(const E* from) {
  P x;
  if constexpr (std::is_same_v<E, typename P::element>) {
    std::memcpy(&x.v, from, sizeof x.v);
  } else if constexpr (std::is_same_v<E, bf16> && sizeof(typename P::element) == 4) {
    typedef std::uint16_t Halves __attribute__((vector_size(P::lanes * 2)));
    Halves halves;
    std::memcpy(&halves, static_cast<const void*>(from), sizeof halves);
    x.v = (typename P::Vector)(__builtin_convertvector(halves, typename P::Bits) << 16);
  } else {
#pragma GCC unroll 32
    for (std::size_t k = 0; k < P::lanes; ++k) x.v[k] = static_cast<typename P::element>(from[k]);
  }
  return x;
}
/// The first `count` of them, fewer than a pack has, and zeros; nothing else is read.
template <class P, class E>
[[gnu::always_inline]] inline P load(const E* from, std::size_t count) {
  E few[P::lanes];
  std::memset(static_cast<void*>(few), 0, sizeof few);
  copy_few<P::lanes>(few, from, count);
  return load<P>(few);
}

/// Rounds to the elements.
template <class E, class A, std::size_t Bytes>
[[gnu::always_inline]] inline void store(E* to, const Pack<A, Bytes>& x) {
  using P = Pack<A, Bytes>;
  if constexpr (std::is_same_v<E, A>) {
    std::memcpy(to, &x.v, sizeof x.v);
  } else if constexpr (std::is_same_v<E, bf16> && sizeof(A) == 4) {
    typedef std::uint16_t Halves __attribute__((vector_size(P::lanes * 2)));
    using Bits = typename P::Bits;
    const Bits bits = (Bits)x.v;
    const Bits nearest = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const Bits quiet = bits >> 16 | 0x0040U;
    const Bits nan = (Bits)((bits & 0x7fffffffU) > 0x7f800000U);
    const Halves halves = __builtin_convertvector((quiet & nan) | (nearest & ~nan), Halves);
    std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
  } else {
#pragma GCC unroll 32
    for (std::size_t k = 0; k < P::lanes; ++k) to[k] = static_cast<E>(x.v[k]);
  }
}
/// The first `count` of them, fewer than a pack has; nothing else is written.
template <class E, class A, std::size_t Bytes>
[[gnu::always_inline]] inline void store(E* to, const Pack<A, Bytes>& x, std::size_t count) {
  E few[Pack<A, Bytes>::lanes];
  store(few, x);
  copy_few<Pack<A, Bytes>::lanes>(to, few, count);
}

/// The width of the packs in a kernel, as a value.
template <std::size_t Bytes>
struct Width {
  template <class A>
  using pack = Pack<A, Bytes>;
};

template <class Kernel>
[[gnu::visibility("hidden"), gnu::flatten]] void run_baseline(const Kernel& kernel) {
  kernel(Width<16>{});
}
#if defined(__x86_64__)
template <class Kernel>
[[gnu::visibility("hidden"), gnu::flatten]] __attribute__((target("avx2"))) void run_avx2(const Kernel& kernel) {
  kernel(Width<32>{});
}
#endif

/// Calls kernel(Width<...>{}), a loop over packs, compiled for the widest vectors without a fused multiply-add: all
/// processors give the same bits. Cost: a call.
template <class Kernel>
void in_packs(const Kernel& kernel) {
#if defined(__x86_64__)
  if (best_isa() != Isa::baseline) return run_avx2(kernel);
#endif
  run_baseline(kernel);
}

}  // namespace meshwise::detail
