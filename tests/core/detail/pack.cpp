// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/detail/pack.hpp"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "meshwise/core/detail/pack_math.hpp"
#include "meshwise/core/random.hpp"

using namespace meshwise;
using namespace meshwise::detail;

namespace {

template <class A>
bool same(A a, A b) {
  using Bits = std::conditional_t<sizeof(A) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (a != a && b != b);
}

/// Numbers of all magnitudes, with what is special among them.
template <class A>
std::vector<A> numbers(std::size_t count, std::uint64_t seed) {
  const A infinity = std::numeric_limits<A>::infinity();
  const std::array<A, 8> special{A(0),
                                 -A(0),
                                 A(1),
                                 infinity,
                                 -infinity,
                                 std::numeric_limits<A>::quiet_NaN(),
                                 std::numeric_limits<A>::denorm_min(),
                                 std::numeric_limits<A>::max()};
  std::vector<A> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    all[i] = bits % 16 < special.size() ? special[bits % 16] : static_cast<A>(normal(seed, i) * 30);
  }
  return all;
}

/// f(a, b) of packs against the same of single numbers.
template <class A, std::size_t Bytes, class F>
int differences(const F& f) {
  using P = Pack<A, Bytes>;
  const std::vector<A> a = numbers<A>(64 * P::lanes, 1), b = numbers<A>(64 * P::lanes, 2);
  int wrong = 0;
  for (std::size_t i = 0; i < a.size(); i += P::lanes) {
    std::array<A, P::lanes> got;
    store(got.data(), f(load<P>(a.data() + i), load<P>(b.data() + i)));
    for (std::size_t k = 0; k < P::lanes; ++k) {
      using One = Pack<A, sizeof(A)>;
      A wanted;
      store(&wanted, f(One(a[i + k]), One(b[i + k])));
      wrong += same(got[k], wanted) ? 0 : 1;
    }
  }
  return wrong;
}

template <class A, std::size_t Bytes>
void check_operations() {
  const auto check = [](const auto& f) { CHECK(differences<A, Bytes>(f) == 0); };
  check([](const auto& a, const auto& b) { return a + b; });
  check([](const auto& a, const auto& b) { return a - b * a; });
  check([](const auto& a, const auto& b) { return -a / b; });
  check([](const auto& a, const auto& b) { return larger(a, b); });
  check([](const auto& a, const auto& b) { return select(a > b, b, a); });
  check([](const auto& a, const auto&) { return math::exp(a); });
  check([](const auto& a, const auto&) { return math::sqrt(a); });
}

}  // namespace

TEST_CASE("a pack does what its elements would, to the bit, whatever its width") {
  check_operations<float, 16>();
  check_operations<float, 32>();
  check_operations<double, 16>();
  check_operations<double, 32>();
}

TEST_CASE("a number as a pack keeps its sign, and the smaller of comparisons with NaN is the first") {
  float x[4];
  store(x, Pack<float, 16>(-0.0F));
  for (const float each : x) CHECK(std::bit_cast<std::uint32_t>(each) == 0x80000000U);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  store(x, larger(Pack<float, 16>(3.0F), Pack<float, 16>(nan)));
  CHECK(x[0] == 3.0F);
}

TEST_CASE("exp of packs is exp_fast, and a root that of the C library") {
  const std::vector<float> x = numbers<float>(4096, 3);
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); i += 8) {
    float powers[8], roots[8];
    in_packs([&](auto width) {
      using P = typename decltype(width)::template pack<float>;
      for (std::size_t k = 0; k < 8; k += P::lanes) {
        const P some = load<P>(x.data() + i + k);
        store(powers + k, math::exp(some));
        store(roots + k, math::sqrt(some));
      }
    });
    for (std::size_t k = 0; k < 8; ++k) {
      wrong += same(powers[k], math::exp_fast(x[i + k])) && same(roots[k], math::sqrt(x[i + k])) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("elements are widened and rounded as one by one", E, float, double, bf16, fp16, f8e4m3) {
  using A = accumulate_t<E>;
  using P = Pack<A, 32>;
  const std::vector<A> values = numbers<A>(256, 4);
  for (std::size_t i = 0; i < values.size(); i += P::lanes) {
    std::array<E, P::lanes> rounded;
    store(rounded.data(), load<P>(values.data() + i));
    std::array<A, P::lanes> back;
    store(back.data(), load<P>(rounded.data()));
    for (std::size_t k = 0; k < P::lanes; ++k) {
      CHECK(same(static_cast<A>(rounded[k]), static_cast<A>(static_cast<E>(values[i + k]))));
      CHECK(same(back[k], static_cast<A>(rounded[k])));
    }
  }
}

TEST_CASE_TEMPLATE("a part of a pack is read and written, and nothing beside it", E, float, double, bf16) {
  using A = accumulate_t<E>;
  using P = Pack<A, 32>;
  for (std::size_t count = 0; count < P::lanes; ++count) {
    const std::vector<E> in(count, static_cast<E>(2.5F));  // exactly as long: the sanitizers watch
    std::array<E, P::lanes + 1> out;
    out.fill(static_cast<E>(-1.0F));
    const P x = load<P>(in.data(), count);
    store(out.data(), x, count);
    for (std::size_t k = 0; k < out.size(); ++k) CHECK(static_cast<A>(out[k]) == (k < count ? A(2.5) : A(-1)));
    std::array<A, P::lanes> all;
    store(all.data(), x);
    for (std::size_t k = count; k < P::lanes; ++k) CHECK(all[k] == A(0));
  }
}
