// SPDX-License-Identifier: Apache-2.0
#include "meshwise/core/reduce.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "../support/sanitized.hpp"
#include "meshwise/core/random.hpp"

using namespace meshwise;

namespace {

using Bytes = std::vector<unsigned char>;

/// Numbers drawn one after another.
struct Draw {
  std::uint64_t seed;
  std::uint64_t index = 0;
  std::uint64_t bits() { return random_bits(seed, index++); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  std::size_t size() {
    constexpr std::size_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 1000, 65537};
    return sizes[below(10)];
  }
};

std::vector<detail::Isa> isas() {
  std::vector<detail::Isa> all = {detail::Isa::baseline};
  if (detail::best_isa() != detail::Isa::baseline) all.push_back(detail::Isa::avx2);
  if (detail::best_isa() == detail::Isa::avx512) all.push_back(detail::Isa::avx512);
  return all;
}

/// What the checks need of an element type and a reduction; the checks themselves are compiled once.
struct Kind {
  std::string name;
  std::size_t size;
  void (*draw)(Draw& draw, unsigned char* to);
  void (*fold)(std::size_t count, const std::vector<Bytes>& from, Bytes& to);
  Reduce (*kernel)(detail::Isa isa);
};

/// Integers: any bits, and zeros. Floats: mostly of moderate size, so that rounding matters, with any bits (NaN, subnormal, infinite, zero) between.
template <class T>
void draw_element(Draw& draw, unsigned char* to) {
  const std::uint64_t bits = draw.bits();
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  if constexpr (std::is_integral_v<T>) {
    if (bits >> 62 == 0) value = 0;
  } else {
    const std::uint64_t what = bits >> 58;
    if (what == 1) value = T((bits & 2) != 0 ? 0.0F : -0.0F);
    if (what > 1) value = T((static_cast<double>((bits >> 11) & 0xffffffffffULL) * 0x1p-40 - 0.5) * 4.0);
  }
  std::memcpy(to, &value, sizeof(T));
}

/// A sum or product of floats as the kernels define it: of several NaN the bits of all, of none the default one.
template <class Op, class A>
A applied(A a, A b) {
  const A result = Op::apply(a, b);
  if constexpr (!std::is_integral_v<A> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>)) {
    using Word = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;
    constexpr Word plain = sizeof(A) == 8 ? Word(0x7ff8000000000000) : Word(0x7fc00000);
    if (result != result) {
      const Word left = a != a ? std::bit_cast<Word>(a) : 0, right = b != b ? std::bit_cast<Word>(b) : 0;
      return std::bit_cast<A>(static_cast<Word>(plain | left | right));
    }
  }
  return result;
}

template <class T, class C>
void left_fold(std::size_t count, const std::vector<Bytes>& from, Bytes& to) {
  using A = accumulate_t<T>;
  T x;
  for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {
    std::memcpy(&x, from[0].data() + i, sizeof(T));
    auto sum = static_cast<A>(x);
    for (std::size_t s = 1; s < from.size(); ++s) {
      std::memcpy(&x, from[s].data() + i, sizeof(T));
      sum = applied<reduction_of<C>>(sum, static_cast<A>(x));
    }
    if constexpr (std::is_same_v<C, Average>) {
      using Wide = std::conditional_t<!std::is_integral_v<A>, A,
                                      std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>>;
      sum = static_cast<A>(static_cast<Wide>(sum) / static_cast<Wide>(from.size()));
    }
    if constexpr (detail::is_logical<C>) sum = static_cast<A>(sum != 0);
    if (from.size() > 1 || detail::is_logical<C>) x = static_cast<T>(sum);
    std::memcpy(to.data() + i, &x, sizeof(T));
  }
}

/// The first value that is not zero: associative, but not commutative.
struct FirstNonZero {
  static constexpr const char* name = "first_non_zero";
  static constexpr ReductionKind kind = ReductionKind::user;
  static constexpr bool commutative = false;
  static constexpr bool linear = false;
  template <Element T>
  static constexpr accumulate_t<T> identity() {
    return accumulate_t<T>{0};
  }
  template <class A>
  static constexpr A apply(A a, A b) {
    return a != 0 ? a : b;
  }
};

template <class T, class Op>
Kind kind_of() {
  return {std::string(element_name(element_kind<T>)) + " " + Op::name, sizeof(T), draw_element<T>, left_fold<T, Op>,
          detail::reduce_kernel<T, Op>};
}

template <class T>
void add_kinds(std::vector<Kind>& all) {
  all.insert(all.end(), {kind_of<T, Sum>(), kind_of<T, Product>(), kind_of<T, Min>(), kind_of<T, Max>(),
                         kind_of<T, Average>(), kind_of<T, PreMultipliedSum>(), kind_of<T, FirstNonZero>()});
  if constexpr (std::is_integral_v<T>) {
    all.insert(all.end(), {kind_of<T, BitAnd>(), kind_of<T, BitOr>(), kind_of<T, BitXor>(), kind_of<T, LogicalAnd>(),
                           kind_of<T, LogicalOr>(), kind_of<T, LogicalXor>()});
  }
}

/// Bytes at any alignment, with guards on both sides.
struct Array {
  static constexpr std::size_t guard = 128;
  std::vector<unsigned char> memory;
  std::size_t begin = 0, bytes = 0;

  Array(std::size_t n, std::size_t offset) : memory(n + 2 * guard + offset, 0xa5), begin(guard + offset), bytes(n) {}
  unsigned char* data() { return memory.data() + begin; }
  bool guarded() const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if ((i < begin || i >= begin + bytes) && memory[i] != 0xa5) return false;
    }
    return true;
  }
};

bool equal(const unsigned char* a, const Bytes& b) { return b.empty() || std::memcmp(a, b.data(), b.size()) == 0; }

struct Case {
  std::size_t count = 0;
  int sources = 1, destinations = 1;
  bool streaming = false, in_place = false, aligned = false;

  explicit Case(Draw& draw)
      : count(draw.size()),
        sources(static_cast<int>(draw.below(9)) + 1),
        destinations(static_cast<int>(draw.below(4))),
        streaming(draw.below(2) == 1),
        in_place(draw.below(3) == 0),
        aligned(draw.below(2) == 1) {}
};

void check_case(const Kind& kind, const Case& c, const std::vector<detail::Isa>& all, Draw& draw) {
  const auto sources = static_cast<std::size_t>(c.sources);
  const auto destinations = static_cast<std::size_t>(c.destinations);
  const std::size_t bytes = c.count * kind.size;
  std::vector<Bytes> input(sources, Bytes(bytes));
  for (auto& array : input) {
    for (std::size_t i = 0; i < bytes; i += kind.size) kind.draw(draw, array.data() + i);
  }
  Bytes expected(bytes);
  kind.fold(c.count, input, expected);
  for (const detail::Isa isa : all) {
    std::vector<Array> from, to;
    for (std::size_t s = 0; s < sources; ++s) {
      from.emplace_back(bytes, c.aligned ? 0 : draw.below(64));
      if (bytes > 0) std::memcpy(from[s].data(), input[s].data(), bytes);
    }
    for (std::size_t d = 0; d < destinations; ++d) to.emplace_back(bytes, c.aligned ? 0 : draw.below(64));
    std::vector<const void*> reads;
    std::vector<void*> writes;
    for (auto& array : from) reads.push_back(array.data());
    for (std::size_t d = 0; d < destinations; ++d) {
      // In place: one destination per source as far as there are any, from the last on.
      const bool shared = c.in_place && d < sources;
      writes.push_back(shared ? from[sources - 1 - d].data() : to[d].data());
    }
    kind.kernel(isa)(c.count, reads.data(), c.sources, writes.data(), c.destinations, c.streaming);
    bool good = true;
    for (void* result : writes) good = good && equal(static_cast<unsigned char*>(result), expected);
    for (const auto& array : from) good = good && array.guarded();
    for (const auto& array : to) good = good && array.guarded();
    for (std::size_t s = 0; s < sources; ++s) {  // sources that are no destinations are untouched
      const bool written = c.in_place && s + destinations >= sources;
      good = good && (written || bytes == 0 || std::memcmp(from[s].data(), input[s].data(), bytes) == 0);
    }
    CAPTURE(kind.name);
    CAPTURE(static_cast<int>(isa));
    CAPTURE(c.count);
    CAPTURE(c.sources);
    CAPTURE(c.destinations);
    CAPTURE(c.streaming);
    CAPTURE(c.in_place);
    REQUIRE(good);
  }
}

}  // namespace

TEST_CASE("every kernel is the left fold, bit for bit, on every instruction set") {
  std::vector<Kind> kinds;
  add_kinds<float>(kinds);
  add_kinds<double>(kinds);
  add_kinds<bf16>(kinds);
  add_kinds<fp16>(kinds);
  add_kinds<std::int8_t>(kinds);
  add_kinds<std::uint8_t>(kinds);
  add_kinds<std::int32_t>(kinds);
  add_kinds<std::uint32_t>(kinds);
  add_kinds<std::int64_t>(kinds);
  add_kinds<std::uint64_t>(kinds);
  add_kinds<f8e4m3>(kinds);
  add_kinds<f8e5m2>(kinds);
  const auto all = isas();
  Draw draw{1};
  for (const Kind& kind : kinds) {
    for (int i = 0; i < (building::sanitized ? 4 : 12); ++i) check_case(kind, Case(draw), all, draw);
  }
}

TEST_CASE("16-bit floats of every value are combined as their element types say") {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    std::vector<T> a(65536), b(65536), out(65536);
    Bytes expected(65536 * sizeof(T));
    for (std::uint64_t i = 0; i < 65536; ++i) {
      a[i] = T::from_bits(static_cast<std::uint16_t>(i));
      b[i] = T::from_bits(static_cast<std::uint16_t>(i * 40503U + 1));
      const auto sum = static_cast<T>(applied<Sum>(static_cast<float>(a[i]), static_cast<float>(b[i])));
      std::memcpy(expected.data() + i * sizeof(T), &sum, sizeof(T));
    }
    const void* from[] = {a.data(), b.data()};
    void* to[] = {out.data()};
    for (const auto isa : isas()) {
      detail::reduce_kernel<T, Sum>(isa)(65536, from, 2, to, 1, false);
      CHECK(equal(reinterpret_cast<const unsigned char*>(out.data()), expected));
    }
  };
  check(bf16(0));
  check(fp16(0));
}

TEST_CASE("8-bit floats of every pair of values are combined as their element types say") {
  const auto check = [](auto zero, auto op) {
    using T = decltype(zero);
    using Op = decltype(op);
    std::vector<T> a(65536), b(65536), out(65536);
    Bytes expected(65536);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      a[i] = T::from_bits(static_cast<std::uint8_t>(i & 0xff));
      b[i] = T::from_bits(static_cast<std::uint8_t>(i >> 8));
      expected[i] = T(applied<Op>(static_cast<float>(a[i]), static_cast<float>(b[i]))).bits;
    }
    const void* from[] = {a.data(), b.data()};
    void* to[] = {out.data()};
    for (const auto isa : isas()) {
      detail::reduce_kernel<T, Op>(isa)(65536, from, 2, to, 1, false);
      CHECK(equal(reinterpret_cast<const unsigned char*>(out.data()), expected));
    }
  };
  check(f8e4m3(0), Sum{});
  check(f8e4m3(0), Product{});
  check(f8e4m3(0), Min{});
  check(f8e4m3(0), Max{});
  check(f8e5m2(0), Sum{});
  check(f8e5m2(0), Product{});
  check(f8e5m2(0), Min{});
  check(f8e5m2(0), Max{});
}

TEST_CASE("a sum that is NaN has the bits of all NaN in it, wherever it stands") {
  const auto check = [](auto nan, auto plain) {
    using T = decltype(nan(0));
    for (const auto isa : isas()) {
      for (const std::size_t sources : {2U, 3U, 6U}) {
        std::vector<std::vector<T>> in(sources, std::vector<T>(777));
        std::vector<const void*> from;
        // Every element meets one NaN, several, or infinities of both signs.
        for (std::size_t s = 0; s < sources; ++s) {
          for (std::size_t i = 0; i < 777; ++i) {
            if (i % 3 == 0) in[s][i] = nan(s);
            if (i % 3 == 1) in[s][i] = s == i % sources ? nan(s) : T(1.0F);
            if (i % 3 == 2) in[s][i] = T(s % 2 == 0 ? HUGE_VALF : -HUGE_VALF);
          }
          from.push_back(in[s].data());
        }
        std::vector<T> out(777), mean(777);
        void *to[] = {out.data()}, *means[] = {mean.data()};
        detail::reduce_kernel<T, Sum>(isa)(777, from.data(), static_cast<int>(sources), to, 1, false);
        detail::reduce_kernel<T, Average>(isa)(777, from.data(), static_cast<int>(sources), means, 1, false);
        T all = nan(0);
        for (std::size_t s = 1; s < sources; ++s) {
          unsigned char a[sizeof(T)], b[sizeof(T)];
          const T one = nan(s);
          std::memcpy(a, &all, sizeof(T));
          std::memcpy(b, &one, sizeof(T));
          for (std::size_t k = 0; k < sizeof(T); ++k) a[k] = static_cast<unsigned char>(a[k] | b[k]);
          std::memcpy(&all, a, sizeof(T));
        }
        bool good = true;
        for (std::size_t i = 0; i < 777; ++i) {
          const T wanted = i % 3 == 0 ? all : i % 3 == 1 ? nan(i % sources) : plain;
          good =
              good && std::memcmp(&out[i], &wanted, sizeof(T)) == 0 && std::memcmp(&mean[i], &wanted, sizeof(T)) == 0;
        }
        CAPTURE(static_cast<int>(isa));
        CAPTURE(sources);
        CHECK(good);
      }
    }
  };
  check([](std::size_t s) { return std::bit_cast<float>(0x7fc00000U | 1U << s | (s == 2 ? 0x80000000U : 0U)); },
        std::bit_cast<float>(0x7fc00000U));
  check([](std::size_t s) { return std::bit_cast<double>(std::uint64_t{0x7ff8} << 48 | std::uint64_t{1} << (7 * s)); },
        std::bit_cast<double>(std::uint64_t{0x7ff8} << 48));
  check([](std::size_t s) { return bf16::from_bits(static_cast<std::uint16_t>(0x7fc0 | 1 << s)); },
        bf16::from_bits(0x7fc0));
  check([](std::size_t s) { return fp16::from_bits(static_cast<std::uint16_t>(0xfe00 | 1 << s)); },
        fp16::from_bits(0x7e00));
}

TEST_CASE("an average is divided before it is rounded, an integer one after it wrapped") {
  // 240 + 240 + 240 exceeds what f8e4m3 holds; its third does not.
  const std::vector<f8e4m3> large(100, f8e4m3(240));
  std::vector<f8e4m3> mean(100);
  const void* from[] = {large.data(), large.data(), large.data()};
  void* to[] = {mean.data()};
  reduce_kernel<f8e4m3, Average>()(100, from, 3, to, 1, false);
  for (const f8e4m3 x : mean) CHECK(float(x) == 240.0F);

  const std::vector<std::int8_t> hundred(100, 100);
  std::vector<std::int8_t> wrapped(100);
  const void* sources[] = {hundred.data(), hundred.data()};
  to[0] = wrapped.data();
  reduce_kernel<std::int8_t, Average>()(100, sources, 2, to, 1, false);
  for (const std::int8_t x : wrapped) CHECK(x == -28);  // 200 - 256, halved
}

TEST_CASE("logical operations give 0 or 1, of a single source too") {
  const std::vector<std::int32_t> in = {0, 5, -1, 1, 0, 1 << 30};
  std::vector<std::int32_t> out(in.size());
  const void* from[] = {in.data()};
  void* to[] = {out.data()};
  for (const Reduce kernel : {reduce_kernel<std::int32_t, LogicalAnd>(), reduce_kernel<std::int32_t, LogicalOr>(),
                              reduce_kernel<std::int32_t, LogicalXor>()}) {
    kernel(in.size(), from, 1, to, 1, false);
    CHECK(out == std::vector<std::int32_t>{0, 1, 1, 1, 0, 1});
  }
}

TEST_CASE("16-bit floats accumulate in float and round once") {
  // 256 + 1 + 1: rounding after each sum would stay at 256 in bf16.
  const std::vector<bf16> big(100, bf16(256)), one(100, bf16(1));
  std::vector<bf16> out(100);
  const void* from[] = {big.data(), one.data(), one.data()};
  void* to[] = {out.data()};
  reduce_kernel<bf16, Sum>()(100, from, 3, to, 1, false);
  for (const bf16 x : out) CHECK(float(x) == 258.0F);
}

TEST_CASE("copies are exact, to every destination, streaming or not") {
  Draw draw{11};
  for (int i = 0; i < 60; ++i) {
    const Case c(draw);
    const std::size_t size = std::size_t{1} << draw.below(5);
    const std::size_t bytes = c.count * size;
    Array from(bytes, draw.below(64));
    for (std::size_t k = 0; k < bytes; ++k) from.data()[k] = static_cast<unsigned char>(draw.bits());
    const Bytes expected(from.data(), from.data() + bytes);
    std::vector<Array> to;
    for (int d = 0; d < c.destinations; ++d) to.emplace_back(bytes, draw.below(64));
    std::vector<void*> writes;
    for (auto& array : to) writes.push_back(array.data());
    if (c.in_place && !writes.empty()) writes[0] = from.data();
    const void* reads[] = {from.data()};
    copy_kernel(size)(c.count, reads, 1, writes.data(), c.destinations, c.streaming);
    for (void* result : writes) REQUIRE((bytes == 0 || std::memcmp(result, expected.data(), bytes) == 0));
    for (const auto& array : to) REQUIRE(array.guarded());
    REQUIRE(from.guarded());
  }
}

TEST_CASE("destinations may coincide") {
  std::vector<float> a(5000, 1.0F), b(5000, 2.0F), c(5000);
  const void* from[] = {a.data(), b.data()};
  void* to[] = {c.data(), c.data(), b.data()};
  reduce_kernel<float, Sum>()(5000, from, 2, to, 3, false);
  for (std::size_t i = 0; i < 5000; ++i) REQUIRE((c[i] == 3.0F && b[i] == 3.0F && a[i] == 1.0F));
}

TEST_CASE("bad arguments are errors that say what to do") {
  float x = 1;
  const void* from[] = {&x, &x};
  void* to[] = {&x};
  const Reduce sum = reduce_kernel<float, Sum>();
  CHECK_THROWS_WITH_AS(sum(1, from, 0, to, 1, false),
                       "reduce: expected at least 1 source, found 0; pass the arrays to combine", Error);
  CHECK_THROWS_WITH_AS(copy_kernel(4)(1, from, 2, to, 1, false),
                       "copy: expected 1 source, found 2; combine several sources with a kernel of reduce_kernel",
                       Error);
  CHECK_THROWS_AS((reduce_kernel<std::int8_t, LogicalAnd>()(1, from, 0, to, 1, false)), Error);
  CHECK_THROWS_AS((void)copy_kernel(3), Error);
  CHECK_THROWS_AS((void)copy_kernel(0), Error);
  CHECK_NOTHROW(sum(0, nullptr, 0, nullptr, 0, true));
}
