// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "meshwise/core/error.hpp"

namespace meshwise {

/// How much a program lets itself be checked while it runs, by cost. A property of a Mesh, the same on all its ranks.
enum class Checks : std::uint8_t {
  none,   ///< what would look at data is left out: a wrong index of `lookup` or `pick` finds nothing, and is zero
  light,  ///< the default: arguments, sizes and indices, on each rank alone
  communicating,  ///< and across ranks: the claims of `assume`, and layouts, extents and counts before each conversion
};

constexpr const char* checks_name(Checks checks) {
  constexpr const char* names[] = {"none", "light", "communicating"};
  return names[static_cast<int>(checks)];
}

/// The level of that name; false, and `checks` stays as it is, if there is none.
constexpr bool parse(std::string_view name, Checks& checks) {
  for (const Checks one : {Checks::none, Checks::light, Checks::communicating}) {
    if (name != checks_name(one)) continue;
    checks = one;
    return true;
  }
  return false;
}

/// The level that MESHWISE_CHECKS names, light if it is not set. Errors: another name.
inline Checks checks_from_environment() {
  Checks checks = Checks::light;
  const char* const text = std::getenv("MESHWISE_CHECKS");
  if (text == nullptr || *text == '\0' || parse(text, checks)) return checks;
  std::string found = "\"";
  for (const char c : std::string_view(text).substr(0, 40)) found += c >= ' ' && c <= '~' ? c : '?';
  fail("MESHWISE_CHECKS", "none, light or communicating", found + "\"", "correct the environment of all ranks");
}

}  // namespace meshwise
