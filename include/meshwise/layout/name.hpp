// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace meshwise {

/// The name of a type as a user spells it, without `meshwise::`: for errors and tables, not for hot paths.
///
/// Cost: builds a string. Source: the compiler's own rendering of a function signature.
template <class T>
std::string name_of() {
  std::string text = __PRETTY_FUNCTION__;
  const std::string::size_type equals = text.find("T = ");
  const std::string::size_type begin = equals == std::string::npos ? 0 : equals + 4;
  // g++ appends "; std::string = ..." after the first argument, clang closes the bracket.
  std::string::size_type end = text.find(';', begin);
  if (end == std::string::npos) end = text.rfind(']');
  text = text.substr(begin, end - begin);
  const std::string prefix = "meshwise::";
  for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) text.erase(at, prefix.size());
  return text;
}

}  // namespace meshwise
