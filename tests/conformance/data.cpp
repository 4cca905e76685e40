// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace conformance {

namespace {

using meshwise::ElementKind;

ElementKind kind_of(Item item) { return static_cast<ElementKind>(item); }

/// The kind that is combined: the wire's, or the element's own.
ElementKind carried_kind(const Case& c) { return c.carrier() == Wire::none ? kind_of(c.item()) : kind_of(c.carrier()); }

template <class T>
void put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}
template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

void encode(ElementKind kind, double value, std::byte* to) {
  switch (kind) {
    case ElementKind::f32: return put(static_cast<float>(value), to);
    case ElementKind::bf16: return put(meshwise::bf16(value), to);
    case ElementKind::f16: return put(meshwise::fp16(value), to);
    case ElementKind::f8e4m3: return put(meshwise::f8e4m3(value), to);
    case ElementKind::f8e5m2: return put(meshwise::f8e5m2(value), to);
    default: return put(value, to);
  }
}

double decode(ElementKind kind, const std::byte* from) {
  switch (kind) {
    case ElementKind::f32: return static_cast<double>(get<float>(from));
    case ElementKind::bf16: return static_cast<double>(static_cast<float>(get<meshwise::bf16>(from)));
    case ElementKind::f16: return static_cast<double>(static_cast<float>(get<meshwise::fp16>(from)));
    case ElementKind::f8e4m3: return static_cast<double>(static_cast<float>(get<meshwise::f8e4m3>(from)));
    case ElementKind::f8e5m2: return static_cast<double>(static_cast<float>(get<meshwise::f8e5m2>(from)));
    default: return get<double>(from);
  }
}

double rounded(ElementKind kind, double value) {
  std::byte bytes[8];
  encode(kind, value, bytes);
  return decode(kind, bytes);
}

/// Significant bits, the hidden one included.
int precision(ElementKind kind) {
  switch (kind) {
    case ElementKind::f32: return 24;
    case ElementKind::bf16: return 8;
    case ElementKind::f16: return 11;
    case ElementKind::f8e4m3: return 4;
    case ElementKind::f8e5m2: return 3;
    default: return 53;
  }
}

bool is_signed(Item item) { return item == Item::i8 || item == Item::i32 || item == Item::i64; }

std::uint64_t mask_of(std::size_t size) { return size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1; }

std::int64_t as_signed(std::uint64_t bits, std::size_t size) {
  const std::uint64_t top = std::uint64_t{1} << (8 * size - 1);
  return static_cast<std::int64_t>((bits ^ top) - top);
}

std::uint64_t random(const Case& c, int rank, std::size_t i, int use) {
  return mixed(c.seed, static_cast<std::uint64_t>(rank) * 1000 + static_cast<std::uint64_t>(use), i);
}

/// Whole numbers of which nine can be added in `bits` bits. One rank of nine, another one for each i, has 0.
double small_whole(const Case& c, int rank, std::size_t i, int bits, std::uint64_t share) {
  const std::uint64_t r = random(c, rank, i, 1);
  const std::uint64_t common = random(c, 100, i, 2);
  const double scale = std::ldexp(1.0, static_cast<int>(common / 16 % 3) - 1);
  if (bits < 8) {
    if (static_cast<std::uint64_t>(rank) == common % 9) return 0;
    return scale * (static_cast<double>(r % 3) - 1);
  }
  const std::uint64_t most = (std::uint64_t{1} << std::min(bits, 24)) / 9 / share;
  return scale * (static_cast<double>(r % (2 * most + 1)) - static_cast<double>(most));
}

/// Powers of two, and if there are bits for it up to four threes among nine ranks.
double small_factor(const Case& c, int rank, std::size_t i, int bits) {
  const std::uint64_t r = random(c, rank, i, 1);
  const std::uint64_t place = (static_cast<std::uint64_t>(rank) + random(c, 100, i, 2)) % 9;
  const double sign = (r & 1U) != 0 ? -1 : 1;
  if (bits >= 8 && place < 4) return 3 * sign;
  if (place == 8) return sign;
  return std::ldexp(sign, static_cast<int>(r / 2 % 3) - 1);
}

double compared(const Case& c, int rank, std::size_t i, bool strange) {
  const std::uint64_t r = random(c, rank, i, 1);
  const bool infinite = kind_of(c.item()) != ElementKind::f8e4m3 && carried_kind(c) != ElementKind::f8e4m3;
  switch (r % 16) {
    case 0:
    case 1: return 0.0;
    case 2:
    case 3: return -0.0;
    case 4:
      if (strange && i % 3 == 0) return std::numeric_limits<double>::quiet_NaN();
      break;
    case 5:
      if (strange && infinite) return std::numeric_limits<double>::infinity();
      break;
    case 6:
      if (strange && infinite) return -std::numeric_limits<double>::infinity();
      break;
    default: break;
  }
  return std::ldexp(static_cast<double>(r / 16 % 9) - 4, static_cast<int>(r / 256 % 3));
}

double rough_value(const Case& c, int rank, std::size_t i) {
  const std::uint64_t r = random(c, rank, i, 1);
  const double fraction = std::ldexp(static_cast<double>(r >> 11), -53);  // of [0, 1)
  if (c.combining() == Combining::product) return ((r & 1U) != 0 ? -1 : 1) * (0.5 + fraction);
  return 4 * fraction - 2;
}

/// An element of floating-point data that is combined.
double float_value(const Case& c, int rank, std::size_t i) {
  const int bits = std::min(precision(kind_of(c.item())), precision(carried_kind(c)));
  if (c.rough()) return rounded(kind_of(c.item()), rough_value(c, rank, i));
  switch (c.combining()) {
    case Combining::product: return small_factor(c, rank, i, bits);
    case Combining::min:
    case Combining::max: return compared(c, rank, i, true);
    case Combining::commuting:
    case Combining::ordered: return compared(c, rank, i, false);
    case Combining::pre_multiplied: return small_whole(c, rank, i, bits, 2);
    default: return small_whole(c, rank, i, bits, 1);
  }
}

/// An element of whole numbers that are combined, in the lower bits.
std::uint64_t whole_value(const Case& c, int rank, std::size_t i) {
  const std::size_t size = size_of(c.item());
  const std::uint64_t a = random(c, rank, i, 1);
  const std::uint64_t b = random(c, rank, i, 3);
  std::uint64_t value = a;
  switch (c.combining()) {
    case Combining::bit_and: value = a | b | random(c, rank, i, 4); break;
    case Combining::bit_or: value = a & b & random(c, rank, i, 4); break;
    case Combining::product: value = b % 4 == 0 ? a : a | 1U; break;
    case Combining::logical_and: value = b % 8 == 0 ? 0 : a | 2U; break;
    case Combining::logical_or: value = b % 8 != 0 ? 0 : a; break;
    case Combining::logical_xor: value = b % 2 == 0 ? 0 : a; break;
    case Combining::ordered: value = a | std::uint64_t{1} << (4 * size); break;
    default: break;
  }
  return value & mask_of(size);
}

/// Two floats of the accumulate type A combined.
template <class A>
A joined(Combining how_combined, A a, A b) {
  switch (how_combined) {
    case Combining::product: return a * b;
    case Combining::min:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
      if (a == b) return std::signbit(a) ? a : b;
      return a < b ? a : b;
    case Combining::max:
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
      if (a == b) return std::signbit(a) ? b : a;
      return a > b ? a : b;
    case Combining::commuting:
      if (std::fabs(a) == std::fabs(b)) return std::signbit(a) ? b : a;
      return std::fabs(a) > std::fabs(b) ? a : b;
    case Combining::ordered: return b != 0 ? b : a;
    default: return a + b;
  }
}

std::uint64_t joined(Combining how_combined, std::uint64_t a, std::uint64_t b, Item item) {
  const std::size_t size = size_of(item);
  const bool less = is_signed(item) ? as_signed(a, size) < as_signed(b, size) : a < b;
  const int half = static_cast<int>(4 * size);
  const std::uint64_t low = (std::uint64_t{1} << half) - 1;
  std::uint64_t result = a + b;
  switch (how_combined) {
    case Combining::product: result = a * b; break;
    case Combining::min: return less ? a : b;
    case Combining::max: return less ? b : a;
    case Combining::bit_and: return a & b;
    case Combining::bit_or: return a | b;
    case Combining::bit_xor: return a ^ b;
    case Combining::logical_and: return a != 0 && b != 0 ? 1 : 0;
    case Combining::logical_or: return a != 0 || b != 0 ? 1 : 0;
    case Combining::logical_xor: return (a != 0) != (b != 0) ? 1 : 0;
    case Combining::commuting: result = a + b + 2 * a * b; break;
    case Combining::ordered:  // first x -> a1 x + a0, then x -> b1 x + b0
      result = ((((b >> half) * (a >> half)) & low) << half) | (((b >> half) * (a & low) + (b & low)) & low);
      break;
    default: break;
  }
  return result & mask_of(size);
}

/// What a rank's value is when it enters the reduction.
double entering(const Case& c, int rank, std::size_t i) {
  double value = float_value(c, rank, i);
  const ElementKind own = kind_of(c.item());
  if (c.combining() == Combining::pre_multiplied) {
    const double factor = factor_of(c, rank);
    value = own == ElementKind::f64 ? value * factor
                                    : static_cast<double>(static_cast<float>(value) * static_cast<float>(factor));
    value = rounded(own, value);
  }
  return rounded(carried_kind(c), value);
}

std::uint64_t entering_whole(const Case& c, int rank, std::size_t i) {
  const std::uint64_t value = whole_value(c, rank, i);
  if (c.combining() != Combining::pre_multiplied) return value;
  return (value * static_cast<std::uint64_t>(static_cast<std::int64_t>(factor_of(c, rank)))) &
         mask_of(size_of(c.item()));
}

/// The fold in rank order. Scans store every prefix, which rounds it.
template <class A>
double folded(const Case& c, int contributors, std::size_t i) {
  const ElementKind carrier = carried_kind(c);
  const bool scan = c.verb() == Verb::inclusive_scan || c.verb() == Verb::exclusive_scan;
  A sum = static_cast<A>(entering(c, 0, i));
  for (int rank = 1; rank < contributors; ++rank) {
    sum = joined(c.combining(), sum, static_cast<A>(entering(c, rank, i)));
    if (scan) sum = static_cast<A>(rounded(carrier, static_cast<double>(sum)));
  }
  if (c.combining() == Combining::average) sum = sum / static_cast<A>(contributors);
  return rounded(carrier, static_cast<double>(sum));
}

std::uint64_t folded_whole(const Case& c, int contributors, std::size_t i) {
  const std::size_t size = size_of(c.item());
  std::uint64_t sum = entering_whole(c, 0, i);
  for (int rank = 1; rank < contributors; ++rank) {
    sum = joined(c.combining(), sum, entering_whole(c, rank, i), c.item());
  }
  if (c.combining() == Combining::average) {
    const auto parts = static_cast<std::uint64_t>(contributors);
    sum = is_signed(c.item()) ? static_cast<std::uint64_t>(as_signed(sum, size) / static_cast<std::int64_t>(parts))
                              : sum / parts;
  }
  if (c.combining() >= Combining::logical_and) sum = sum != 0 ? 1 : 0;
  return sum & mask_of(size);
}

double neutral(const Case& c) {
  const double most = c.item() == Item::f8e4m3 ? 448 : std::numeric_limits<double>::infinity();
  switch (c.combining()) {
    case Combining::product: return 1;
    case Combining::min: return most;
    case Combining::max: return -most;
    default: return 0;
  }
}

std::uint64_t neutral_whole(const Case& c) {
  const std::size_t size = size_of(c.item());
  const std::uint64_t all = mask_of(size);
  const std::uint64_t top = std::uint64_t{1} << (8 * size - 1);
  switch (c.combining()) {
    case Combining::product:
    case Combining::logical_and: return 1;
    case Combining::min: return is_signed(c.item()) ? all ^ top : all;
    case Combining::max: return is_signed(c.item()) ? top : 0;
    case Combining::bit_and: return all;
    case Combining::ordered: return std::uint64_t{1} << (4 * size);
    default: return 0;
  }
}

}  // namespace

double factor_of(const Case& c, int rank) {
  if (c.combining() != Combining::pre_multiplied) return 1;
  // The second run of a prepared call has other data, but the same factors.
  const std::uint64_t r = mixed(c.seed % (std::uint64_t{1} << 32), 77, static_cast<std::uint64_t>(rank));
  if (!is_float(c.item())) return static_cast<double>(static_cast<std::int64_t>(r % 4294967296U) - 2147483648);
  if (c.rough()) return std::ldexp(static_cast<double>(r >> 11), -52) - 1;
  const double sign = (r & 1U) != 0 ? -1 : 1;
  const int bits = std::min(precision(kind_of(c.item())), precision(carried_kind(c)));
  return bits < 8 || (r & 2U) != 0 ? sign : 2 * sign;
}

Table contributions(const Case& c, int rank) {
  const std::size_t size = size_of(c.item());
  Table table(period * size);
  for (std::size_t i = 0; i < period; ++i) {
    std::byte* const to = table.data() + i * size;
    if (combines(c.verb()) && is_float(c.item())) {
      encode(kind_of(c.item()), float_value(c, rank, i), to);
    } else if (combines(c.verb())) {
      const std::uint64_t value = whole_value(c, rank, i);
      std::memcpy(to, &value, size);
    } else if (c.carrier() != Wire::none && is_float(c.item())) {
      encode(kind_of(c.item()), rough_value(c, rank, i), to);
    } else {
      const std::uint64_t bits[2] = {random(c, rank, i, 1), random(c, rank, i, 3)};
      std::memcpy(to, bits, size);
    }
  }
  return table;
}

Table carried(const Case& c, int rank) {
  Table table = contributions(c, rank);
  if (c.carrier() == Wire::none || !is_float(c.item())) return table;
  const ElementKind own = kind_of(c.item());
  const std::size_t size = size_of(c.item());
  for (std::size_t i = 0; i < period; ++i) {
    std::byte* const at = table.data() + i * size;
    encode(own, rounded(carried_kind(c), decode(own, at)), at);
  }
  return table;
}

Table combined(const Case& c, int contributors) {
  const std::size_t size = size_of(c.item());
  Table table(period * size);
  for (std::size_t i = 0; i < period; ++i) {
    std::byte* const to = table.data() + i * size;
    if (is_float(c.item())) {
      double value = neutral(c);
      if (contributors > 0) {
        value = carried_kind(c) == ElementKind::f64 ? folded<double>(c, contributors, i)
                                                    : folded<float>(c, contributors, i);
      }
      encode(kind_of(c.item()), value, to);
    } else {
      const std::uint64_t value = contributors > 0 ? folded_whole(c, contributors, i) : neutral_whole(c);
      std::memcpy(to, &value, size);
    }
  }
  return table;
}

std::vector<double> tolerances(const Case& c, int contributors) {
  std::vector<double> result(period, 0.0);
  if (!c.rough() || c.in_rank_order()) return result;
  const int bits = std::min(precision(kind_of(c.item())), precision(carried_kind(c)));
  for (std::size_t i = 0; i < period; ++i) {
    double sum = 0;
    for (int rank = 0; rank < contributors; ++rank) sum += std::fabs(entering(c, rank, i));
    if (c.combining() == Combining::product) {
      sum = 1;
      for (int rank = 0; rank < contributors; ++rank) sum *= std::fabs(entering(c, rank, i));
    }
    const bool coarse = kind_of(c.item()) == ElementKind::f8e4m3 || carried_kind(c) == ElementKind::f8e4m3;
    result[i] = sum * std::ldexp(contributors, 1 - bits) + std::ldexp(contributors, coarse ? -9 : -14);
  }
  return result;
}

bool agrees(const Case& c, const std::byte* found, const std::byte* wanted, double tolerance) {
  if (std::memcmp(found, wanted, size_of(c.item())) == 0) return true;
  if (!is_float(c.item())) return false;
  const double a = decode(kind_of(c.item()), found);
  const double b = decode(kind_of(c.item()), wanted);
  // Copies keep the bits of a NaN.
  if (std::isnan(a) && std::isnan(b)) return combines(c.verb());
  return tolerance > 0 && std::fabs(a - b) <= tolerance;
}

std::string shown(const Case& c, const std::byte* item) {
  std::string text = is_float(c.item()) ? std::to_string(decode(kind_of(c.item()), item)) + " = 0x" : "0x";
  for (std::size_t k = size_of(c.item()); k-- > 0;) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(item[k]));
    text += digits;
  }
  return text;
}

}  // namespace conformance
