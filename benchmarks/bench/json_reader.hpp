// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace harness {

/// A JSON value that was read. What is not there is null, and what is of another kind reads as nothing.
class JsonValue {
 public:
  enum class Kind { null, boolean, number, text, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string text;
  std::vector<std::string> names;  ///< of the members of an object
  std::vector<JsonValue> items;    ///< of an array, or the members' values

  /// The member of that name, else a null.
  const JsonValue& operator[](std::string_view name) const {
    static const JsonValue none;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (names[k] == name) return items[k];
    }
    return none;
  }
};

/// Errors: std::runtime_error that says where the text is no JSON.
JsonValue read_json(std::string_view text);

}  // namespace harness
