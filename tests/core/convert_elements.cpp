// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/convert_elements.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "meshwise/core/random.hpp"

using namespace meshwise;

namespace {

constexpr ElementKind kinds[] = {ElementKind::f32, ElementKind::f64,    ElementKind::bf16,
                                 ElementKind::f16, ElementKind::f8e4m3, ElementKind::f8e5m2};

std::vector<detail::Isa> isas() {
  std::vector<detail::Isa> all = {detail::Isa::baseline};
  if (detail::best_isa() != detail::Isa::baseline) all.push_back(detail::Isa::avx2);
  if (detail::best_isa() == detail::Isa::avx512) all.push_back(detail::Isa::avx512);
  return all;
}

/// Calls f with a value of the type of a float kind.
template <class F>
void with_type(ElementKind kind, const F& f) {
  switch (kind) {
    case ElementKind::f32: return f(0.0F);
    case ElementKind::f64: return f(0.0);
    case ElementKind::bf16: return f(bf16(0));
    case ElementKind::f16: return f(fp16(0));
    case ElementKind::f8e4m3: return f(f8e4m3(0));
    case ElementKind::f8e5m2: return f(f8e5m2(0));
    default: FAIL("no float kind");
  }
}

using Bytes = std::vector<unsigned char>;

/// Element by element, by the types' constructors.
Bytes reference(ElementKind from_kind, const unsigned char* from, ElementKind to_kind, std::size_t count) {
  Bytes result(count * element_size(to_kind));
  with_type(from_kind, [&](auto from_zero) {
    with_type(to_kind, [&](auto to_zero) {
      auto x = from_zero;
      auto y = to_zero;
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&x, from + i * sizeof(x), sizeof(x));
        if constexpr (std::is_same_v<decltype(x), decltype(y)>) {
          y = x;
        } else if constexpr (std::is_same_v<decltype(x), double>) {
          y = decltype(y)(x);
        } else {
          y = decltype(y)(static_cast<float>(x));
        }
        std::memcpy(result.data() + i * sizeof(y), &y, sizeof(y));
      }
    });
  });
  return result;
}

/// Equal bits, or NaN on both sides.
bool equal(ElementKind kind, const unsigned char* a, const unsigned char* b, std::size_t count) {
  const std::size_t bytes = count * element_size(kind);
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return true;
  bool good = true;
  with_type(kind, [&](auto zero) {
    auto x = zero;
    auto y = zero;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&x, a + i * sizeof(x), sizeof(x));
      std::memcpy(&y, b + i * sizeof(y), sizeof(y));
      good = good && (std::memcmp(&x, &y, sizeof(x)) == 0 || (x != x && y != y));
    }
  });
  return good;
}

void convert(detail::Isa isa, ElementKind from_kind, const void* from, ElementKind to_kind, void* to,
             std::size_t count) {
  detail::convert_elements(count, detail::recodes_of_kind(from_kind, isa), from, detail::recodes_of_kind(to_kind, isa),
                           to);
}

/// Values of all sizes that the small types hold, the middles between their values, and any bits at all.
Bytes draw(ElementKind kind, std::size_t count, std::uint64_t seed) {
  Bytes result(count * element_size(kind));
  with_type(kind, [&](auto zero) {
    auto x = zero;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = random_bits(seed, i);
      std::memcpy(&x, &bits, sizeof(x));
      if (bits >> 62 != 0) {
        const std::uint64_t kept = bits >> 60 & 3;  // short fractions meet ties
        const double fraction = static_cast<double>(kept == 0 ? bits >> 12 & 0x1f : bits >> 12 & 0xfffffffffffU);
        const double scale = kept == 0 ? 0x1p-5 : 0x1p-44;
        x = decltype(x)(std::ldexp(1.0 + fraction * scale, static_cast<int>(bits % 48) - 26) * (bits & 64 ? -1 : 1));
      }
      std::memcpy(result.data() + i * sizeof(x), &x, sizeof(x));
    }
  });
  return result;
}

}  // namespace

TEST_CASE("arrays convert as their elements do, between all float types, on every instruction set") {
  std::uint64_t seed = 1;
  for (const ElementKind from_kind : kinds) {
    for (const ElementKind to_kind : kinds) {
      for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 7U, 8U, 64U, 1000U, 65537U}) {
        CAPTURE(std::string(element_name(from_kind)));
        CAPTURE(std::string(element_name(to_kind)));
        CAPTURE(count);
        const std::size_t from_size = element_size(from_kind), to_size = element_size(to_kind);
        const Bytes input = draw(from_kind, count, ++seed);
        const Bytes expected = reference(from_kind, input.data(), to_kind, count);
        const auto check = [&](const auto& run) {
          Bytes from(count * from_size + 1), to(count * to_size + 64, 0xa5);
          if (count > 0) std::memcpy(from.data() + 1, input.data(), count * from_size);
          run(from.data() + 1, to.data() + 3);
          REQUIRE(equal(to_kind, to.data() + 3, expected.data(), count));
          for (std::size_t i = 0; i < 3; ++i) REQUIRE(to[i] == 0xa5);
          for (std::size_t i = 3 + count * to_size; i < to.size(); ++i) REQUIRE(to[i] == 0xa5);
          REQUIRE((count == 0 || std::memcmp(from.data() + 1, input.data(), count * from_size) == 0));
          if (to_size > from_size) return;
          run(from.data() + 1, from.data() + 1);
          REQUIRE(equal(to_kind, from.data() + 1, expected.data(), count));
        };
        check([&](void* from, void* to) { convert_elements(from_kind, from, to_kind, to, count); });
        if (from_kind == to_kind) continue;
        for (const detail::Isa isa : isas()) {
          check([&](void* from, void* to) { convert(isa, from_kind, from, to_kind, to, count); });
        }
      }
    }
  }
}

TEST_CASE("every code of the small types widens exactly, and comes back") {
  for (const ElementKind kind : {ElementKind::bf16, ElementKind::f16, ElementKind::f8e4m3, ElementKind::f8e5m2}) {
    const std::size_t size = element_size(kind);
    const std::size_t count = std::size_t{1} << (8 * size);
    Bytes codes(count * size);
    for (std::size_t i = 0; i < count; ++i) std::memcpy(codes.data() + i * size, &i, size);
    for (const ElementKind wide : {ElementKind::f32, ElementKind::f64}) {
      const Bytes expected = reference(kind, codes.data(), wide, count);
      for (const detail::Isa isa : isas()) {
        CAPTURE(std::string(element_name(kind)));
        CAPTURE(static_cast<int>(isa));
        Bytes values(count * element_size(wide)), back(codes.size());
        convert(isa, kind, codes.data(), wide, values.data(), count);
        CHECK(equal(wide, values.data(), expected.data(), count));
        convert(isa, wide, values.data(), kind, back.data(), count);
        CHECK(equal(kind, back.data(), codes.data(), count));
      }
    }
  }
}

TEST_CASE("floats of all sizes narrow as the constructors say") {
  // Every sign, exponent and leading fraction, with the ends of the rest: all ties and their neighbours.
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000U; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (const ElementKind kind : {ElementKind::bf16, ElementKind::f16, ElementKind::f8e4m3, ElementKind::f8e5m2}) {
    const Bytes expected = reference(ElementKind::f32, bytes, kind, values.size());
    for (const detail::Isa isa : isas()) {
      CAPTURE(std::string(element_name(kind)));
      CAPTURE(static_cast<int>(isa));
      Bytes out(expected.size());
      convert(isa, ElementKind::f32, values.data(), kind, out.data(), values.size());
      CHECK(equal(kind, out.data(), expected.data(), values.size()));
    }
  }
}

TEST_CASE("conversions of types that are known when compiling") {
  const std::vector<float> in = {1.0F, -2.5F, 448.0F, 500.0F, 1e-9F};
  std::vector<f8e4m3> small(in.size());
  std::vector<bf16> back(in.size());
  convert_elements<float, f8e4m3>(in.size(), in.data(), small.data());
  convert_elements<f8e4m3, bf16>(in.size(), small.data(), back.data());
  CHECK(float(back[0]) == 1.0F);
  CHECK(float(back[1]) == -2.5F);
  CHECK(float(back[2]) == 448.0F);
  CHECK(std::isnan(float(back[3])));
  CHECK(float(back[4]) == 0.0F);
  std::vector<float> same(in.size());
  convert_elements<float, float>(in.size(), in.data(), same.data());
  CHECK(same == in);
  convert_elements<double, fp16>(0, nullptr, nullptr);

  // Twice rounded, 1 + 2^-8 + 2^-30 would be 1 in bf16: first to the tie, then to even.
  const double above = 1 + 0x1p-8 + 0x1p-30;
  bf16 once{};
  convert_elements<double, bf16>(1, &above, &once);
  CHECK(float(once) == 1 + 0x1p-7F);
}

TEST_CASE("integers do not convert") {
  float x = 1;
  CHECK_THROWS_WITH_AS(convert_elements(ElementKind::f32, &x, ElementKind::i32, &x, 1),
                       "convert_elements: expected float types, found i32; convert among f32, f64, bf16, f16, f8e4m3 "
                       "and f8e5m2",
                       Error);
  CHECK_THROWS_AS(convert_elements(ElementKind::u8, &x, ElementKind::u8, &x, 1), Error);
  CHECK_THROWS_AS(convert_elements(static_cast<ElementKind>(99), &x, ElementKind::f32, &x, 1), Error);
}
