// SPDX-License-Identifier: Apache-2.0
#include "json_reader.hpp"

#include <cstdlib>
#include <stdexcept>

namespace harness {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  JsonValue document() {
    JsonValue result = value(0);
    blanks();
    if (at_ != text_.size()) refuse("the end");
    return result;
  }

 private:
  static constexpr int deepest = 64;

  [[noreturn]] void refuse(const std::string& expected) const {
    std::size_t line = 1;
    for (std::size_t k = 0; k < at_ && k < text_.size(); ++k) line += text_[k] == '\n' ? 1U : 0U;
    throw std::runtime_error("line " + std::to_string(line) + ": expected " + expected);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void blanks() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t')) ++at_;
  }

  bool take(char c) {
    blanks();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view name) {
    if (text_.substr(at_, name.size()) != name) return false;
    at_ += name.size();
    return true;
  }

  JsonValue value(int depth) {
    if (depth > deepest) refuse("values that lie in each other at most " + std::to_string(deepest) + " deep");
    blanks();
    JsonValue result;
    if (peek() == '{') {
      object(result, depth);
    } else if (peek() == '[') {
      array(result, depth);
    } else if (peek() == '"') {
      result.kind = JsonValue::Kind::text;
      result.text = quoted();
    } else if (word("true") || word("false")) {
      result.kind = JsonValue::Kind::boolean;
      result.boolean = text_[at_ - 2] == 'u';  // tr(u)e
    } else if (!word("null")) {
      digits(result);
    }
    return result;
  }

  void object(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::object;
    take('{');
    if (take('}')) return;
    do {
      blanks();
      if (peek() != '"') refuse("a name in quotes");
      result.names.push_back(quoted());
      if (!take(':')) refuse("':'");
      result.items.push_back(value(depth + 1));
    } while (take(','));
    if (!take('}')) refuse("',' or '}'");
  }

  void array(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::array;
    take('[');
    if (take(']')) return;
    do {
      result.items.push_back(value(depth + 1));
    } while (take(','));
    if (!take(']')) refuse("',' or ']'");
  }

  void digits(JsonValue& result) {
    std::size_t end = at_;
    while (end < text_.size() && std::string_view("+-.eE0123456789").find(text_[end]) != std::string_view::npos) ++end;
    const std::string number(text_.substr(at_, end - at_));
    char* rest = nullptr;
    result.number = std::strtod(number.c_str(), &rest);
    if (number.empty() || *rest != '\0') refuse("a value");
    result.kind = JsonValue::Kind::number;
    at_ = end;
  }

  std::string quoted() {
    std::string result;
    ++at_;
    for (; at_ < text_.size() && peek() != '"'; ++at_) {
      if (peek() != '\\') {
        result += peek();
        continue;
      }
      ++at_;
      switch (peek()) {
        case 'n': result += '\n'; break;
        case 't': result += '\t'; break;
        case 'b':
        case 'f':
        case 'r': result += ' '; break;
        case 'u': result += escaped(); break;
        case '"':
        case '\\':
        case '/': result += peek(); break;
        default: refuse("a known escape");
      }
    }
    if (at_ >= text_.size()) refuse("a quote that ends the text");
    ++at_;
    return result;
  }

  /// Names and host descriptions are ASCII; anything else is shown as a question mark.
  char escaped() {
    if (text_.size() - at_ < 5) refuse("four hexadecimal digits");
    const std::string hexadecimal(text_.substr(at_ + 1, 4));
    char* rest = nullptr;
    const long code = std::strtol(hexadecimal.c_str(), &rest, 16);
    if (*rest != '\0') refuse("four hexadecimal digits");
    at_ += 4;
    return code >= ' ' && code < 127 ? static_cast<char>(code) : '?';
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

JsonValue read_json(std::string_view text) { return Reader(text).document(); }

}  // namespace harness
