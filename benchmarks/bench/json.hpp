// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "host.hpp"

namespace harness {

/// Writes one JSON document, members in the order in which they are given.
///
///     Json json;
///     json.object().member("ranks", 2).begin_array("points").object().member("us", 1.5).end().end().end();
///     json.text();
class Json {
 public:
  Json& object() { return open('{', '}'); }
  Json& begin_object(std::string_view name) { return key(name).object(); }
  Json& begin_array(std::string_view name) { return key(name).open('[', ']'); }
  Json& array() { return open('[', ']'); }

  /// Closes what was opened last.
  Json& end() {
    const char closing = open_.back();
    open_.pop_back();
    if (!first_) line();
    text_ += closing;
    first_ = false;
    return *this;
  }

  template <class T>
  Json& member(std::string_view name, const T& value) {
    return key(name).value(value);
  }

  template <class T>
  Json& value(const T& value) {
    separate();
    if constexpr (std::is_same_v<T, bool>) {
      text_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      text_ += std::to_string(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      number(value);
    } else {
      quote(value);
    }
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  Json& open(char begin, char closing) {
    separate();
    text_ += begin;
    open_ += closing;
    first_ = true;
    return *this;
  }

  Json& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }

  void separate() {
    if (after_key_) {
      after_key_ = false;
      return;
    }
    if (!first_) text_ += ',';
    if (!open_.empty()) line();
    first_ = false;
  }

  void line() {
    text_ += '\n';
    text_.append(2 * open_.size(), ' ');
  }

  void number(double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    text_ += std::isfinite(value) ? digits : "null";
  }

  void quote(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) >= ' ') {
        text_ += c;
      } else {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        text_ += escaped;
      }
    }
    text_ += '"';
  }

  std::string text_;
  std::string open_;  ///< what closes what is open
  bool first_ = true;
  bool after_key_ = false;
};

/// A member that describes the host.
inline void write_host(Json& json, const Host& host) {
  json.begin_object("host").member("name", host.name).member("processor", host.processor).member("cores", host.cores);
  json.member("online", host.online).member("load", host.load).member("system", host.system);
  json.member("compiler", host.compiler).member("library", host.library).member("governor", host.governor);
  json.member("huge_pages", host.huge_pages).member("date", host.date).begin_array("caches");
  for (const Host::Cache& cache : host.caches) {
    json.object().member("name", cache.name).member("size", cache.size).member("shared", cache.shared).end();
  }
  json.end().end();
}

}  // namespace harness
