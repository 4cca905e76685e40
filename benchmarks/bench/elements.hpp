// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "meshwise/core/element.hpp"

namespace harness {

struct ElementName {
  const char* name;   ///< as nccl-tests spells it where it has the type
  const char* other;  ///< another spelling that is understood
  meshwise::ElementKind kind;
};
inline constexpr ElementName element_names[] = {
    {"float", "f32", meshwise::ElementKind::f32},      {"double", "f64", meshwise::ElementKind::f64},
    {"bfloat16", "bf16", meshwise::ElementKind::bf16}, {"half", "f16", meshwise::ElementKind::f16},
    {"int32", "i32", meshwise::ElementKind::i32},      {"int64", "i64", meshwise::ElementKind::i64},
    {"uint8", "u8", meshwise::ElementKind::u8}};

constexpr const char* element_text(meshwise::ElementKind kind) {
  for (const ElementName& one : element_names) {
    if (one.kind == kind) return one.name;
  }
  return "unknown";
}

constexpr bool parse_element(std::string_view name, meshwise::ElementKind& kind) {
  for (const ElementName& one : element_names) {
    if (name != one.name && name != one.other) continue;
    kind = one.kind;
    return true;
  }
  return false;
}

/// How values are combined.
enum class Redop : std::uint8_t { sum, prod, min, max };
inline constexpr const char* redop_names[] = {"sum", "prod", "min", "max"};
inline constexpr int redop_count = 4;

constexpr const char* redop_name(Redop redop) { return redop_names[static_cast<int>(redop)]; }

constexpr bool parse_redop(std::string_view name, Redop& redop) {
  for (int k = 0; k < redop_count; ++k) {
    if (name != redop_names[k]) continue;
    redop = static_cast<Redop>(k);
    return true;
  }
  return false;
}

/// Calls f(T{}) with the type of a kind.
template <class F>
decltype(auto) with_element(meshwise::ElementKind kind, F&& f) {
  using meshwise::ElementKind;
  switch (kind) {
    case ElementKind::f64: return f(double{});
    case ElementKind::bf16: return f(meshwise::bf16(0.0F));
    case ElementKind::f16: return f(meshwise::fp16(0.0F));
    case ElementKind::i32: return f(std::int32_t{});
    case ElementKind::i64: return f(std::int64_t{});
    case ElementKind::u8: return f(std::uint8_t{});
    default: return f(float{});
  }
}

}  // namespace harness
