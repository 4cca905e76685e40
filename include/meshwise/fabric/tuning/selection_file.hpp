// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshwise/core/error.hpp"
#include "meshwise/fabric/tuning/fingerprint.hpp"
#include "meshwise/schedule/selection_table.hpp"
#include "meshwise/schedule/settings.hpp"

namespace meshwise {

/// The text of a measured table, as `meshwise-tune` writes it and people may edit it.
///
///     meshwise-table 1
///     cpu Some Processor                  # the fingerprint: a line that is left out is not compared
///     cores 2
///     # operation fabric way ranks bytes algorithm
///     all_reduce shared_memory memory 4 0-64K automatic
///     all_reduce * messages 4 64K-inf ring:lanes=4
///
/// One rule a line: the fabric is thread, shared_memory or *, the way memory, foreign or messages, bytes count as in
/// Question (what a rank has on its larger side) from the first number up to the second one, which is not in the rule;
/// they are 0, a power of two with or without K, M, G, or inf, since sizes matter by their highest bit only.
/// `automatic` is what the library would do without a table. '#' begins a comment.
struct SelectionFile {
  static constexpr int format = 1;
  static constexpr const char* first_word = "meshwise-table";
  static constexpr const char* fabrics[] = {"thread", "shared_memory"};
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  struct Entry {
    SelectionRule rule;
    std::string fabric;   ///< "*": all
    std::string comment;  ///< behind it, in what is written
    int line = 0;         ///< in the text, from 1
  };

  int version = format;     ///< of the format; of another one than that above nothing else is read
  Fingerprint fingerprint;  ///< of where it was measured
  std::vector<Entry> entries;

  /// Reads a text in two steps, so that what was measured elsewhere, perhaps by a library with other algorithms, need
  /// not be understood: first `head`, then the whole.
  ///
  /// name: of the file, for errors. Errors: `invalid_argument`, with the line and a remedy, for whatever is not as
  /// above, and for rules that overlap.
  static SelectionFile head(std::string_view text, const std::string& name);
  static SelectionFile parse(std::string_view text, const std::string& name);

  /// The rules for one fabric. Errors: `invalid_argument` for more than a table holds.
  SelectionTable table(std::string_view fabric, const std::string& name) const {
    SelectionTable result;
    for (const Entry& entry : entries) {
      if (entry.fabric != "*" && entry.fabric != fabric) continue;
      if (result.size == SelectionTable::most_rules) {
        fail(name + ":" + std::to_string(entry.line),
             "at most " + std::to_string(SelectionTable::most_rules) + " rules for a fabric", "more",
             "join rules that say the same");
      }
      result.rules[result.size++] = entry.rule;
    }
    return result;
  }

  /// The text; reading it gives the same entries, but for their lines.
  std::string text() const;
};

namespace detail {

/// Reads a SelectionFile and believes nothing of it.
class SelectionReader {
 public:
  SelectionReader(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  SelectionFile read(bool whole) {
    SelectionFile file;
    bool begun = false;
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      rest_ = text_.substr(0, end);
      text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
      ++line_;
      rest_ = rest_.substr(0, rest_.find('#'));
      const std::string_view first = word();
      if (first.empty()) continue;
      if (!begun) {
        begun = true;
        file.version = version(first);
        if (file.version != SelectionFile::format) return file;
      } else if (const int key = fingerprint_key(first); key >= 0) {
        file.fingerprint.values[key] = plain_text(rest_);
      } else if (whole) {
        file.entries.push_back(entry(first));
        compare(file.entries);
      }
    }
    if (!begun) refuse("the first line \"meshwise-table 1\"", "no line at all", "write one with meshwise-tune");
    return file;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found, const std::string& remedy) const {
    fail(name_ + ":" + std::to_string(line_), expected, found, remedy);
  }

  static constexpr const char* example = "write for example: all_reduce shared_memory memory 4 0-64K ring:lanes=2";

  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result + (text.size() > 40 ? "...\"" : "\"");
  }

  /// Takes the next word off the line; empty at its end.
  std::string_view word() {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!rest_.empty() && blank(rest_.front())) rest_.remove_prefix(1);
    std::size_t size = 0;
    while (size < rest_.size() && !blank(rest_[size])) ++size;
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }

  std::string_view need(const char* what) {
    const std::string_view result = word();
    if (result.empty()) refuse(what, "the end of the line", example);
    return result;
  }

  /// A whole number from least to most; least - 1 if it is none. least >= 0.
  static std::int64_t number(std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || value > most / 10) return least - 1;
      value = value * 10 + (c - '0');
    }
    return text.empty() || value < least || value > most ? least - 1 : value;
  }

  int version(std::string_view first) {
    if (first != SelectionFile::first_word) {
      refuse("the first line \"meshwise-table 1\"", quoted(first), "name a file that meshwise-tune has written");
    }
    const std::string_view text = need("the version of the format");
    const std::int64_t value = number(text, 1, 1'000'000);
    if (value < 1) refuse("the version of the format, a number", quoted(text), "write \"meshwise-table 1\"");
    return static_cast<int>(value);
  }

  static int fingerprint_key(std::string_view text) {
    for (int k = 0; k < Fingerprint::count; ++k) {
      if (text == Fingerprint::names[k]) return k;
    }
    return -1;
  }

  template <class Value, class Name>
  static std::string names(int count, const Name& name) {
    std::string result;
    for (int k = 0; k < count; ++k) result += (k == 0 ? "" : ", ") + std::string(name(static_cast<Value>(k)));
    return result;
  }

  SelectionFile::Entry entry(std::string_view first) {
    SelectionFile::Entry result;
    result.line = line_;
    SelectionRule& rule = result.rule;
    if (!meshwise::parse(first, rule.operation)) {
      refuse("an operation (" + names<Operation>(operation_count, operation_name) + ") or a line of the fingerprint (" +
                 names<int>(Fingerprint::count, [](int k) { return Fingerprint::names[k]; }) + ")",
             quoted(first), example);
    }
    result.fabric = fabric(need("a fabric"));
    rule.way = way(need("a way"));
    const std::string_view ranks = need("a number of ranks");
    rule.ranks = static_cast<int>(number(ranks, 1, most_ranks));
    if (rule.ranks < 1) {
      refuse("a number of ranks from 1 to " + std::to_string(most_ranks), quoted(ranks), example);
    }
    range(need("bytes"), rule);
    algorithm(need("an algorithm"), rule);
    if (const std::string_view more = word(); !more.empty()) {
      refuse("the end of the line behind the algorithm", quoted(more), "put '#' in front of comments");
    }
    return result;
  }

  std::string fabric(std::string_view text) const {
    bool known = text == "*";
    for (const char* name : SelectionFile::fabrics) known = known || text == name;
    if (!known) refuse("a fabric: thread, shared_memory or *", quoted(text), example);
    return std::string(text);
  }

  Way way(std::string_view text) const {
    for (int k = 0; k < way_count; ++k) {
      if (text == way_name(static_cast<Way>(k))) return static_cast<Way>(k);
    }
    refuse("a way: " + names<Way>(way_count, way_name), quoted(text), example);
  }

  void range(std::string_view text, SelectionRule& rule) const {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) refuse("bytes as FROM-TO", quoted(text), "write for example 0-64K or 1M-inf");
    rule.from = bytes(text.substr(0, dash));
    rule.to = text.substr(dash + 1) == "inf" ? SelectionTable::no_end : bytes(text.substr(dash + 1));
    if (rule.from >= rule.to) refuse("a range of bytes that is not empty", quoted(text), "put the lower number first");
  }

  std::uint64_t bytes(std::string_view text) const {
    int shift = 0;
    std::string_view digits = text;
    if (!text.empty() && (text.back() == 'K' || text.back() == 'M' || text.back() == 'G')) {
      shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : 30;
      digits.remove_suffix(1);
    }
    const std::int64_t value = number(digits, 0, std::int64_t{1} << (61 - shift));
    if (value < 0 || (value & (value - 1)) != 0) {
      refuse("0, a power of two with or without K, M or G, or inf as the end", quoted(text),
             "choose the next power of two: sizes matter by their highest bit");
    }
    return static_cast<std::uint64_t>(value) << shift;
  }

  void algorithm(std::string_view text, SelectionRule& rule) const {
    std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    if (!meshwise::parse(name, rule.algorithm) || rule.algorithm == Algorithm::custom) {
      refuse("an algorithm: " + names<Algorithm>(algorithm_count - 1, algorithm_name), quoted(name), example);
    }
    while (colon != std::string_view::npos) {
      text = text.substr(colon + 1);
      colon = text.find(':');
      const std::string_view option = text.substr(0, colon);
      constexpr std::string_view key = "lanes=";
      const bool known = option.substr(0, key.size()) == key;
      const std::int64_t value = known ? number(option.substr(key.size()), 1, most_lanes) : 0;
      if (value < 1 || !rule.decides()) {
        refuse(
            "lanes=N behind the name of an algorithm other than automatic, N from 1 to " + std::to_string(most_lanes),
            quoted(option), example);
      }
      rule.lanes = static_cast<int>(value);
    }
  }

  /// The last entry with those before it.
  void compare(const std::vector<SelectionFile::Entry>& entries) const {
    if (entries.size() > most_entries) {
      refuse("at most " + std::to_string(most_entries) + " rules", "more", "join rules that say the same");
    }
    const SelectionFile::Entry& one = entries.back();
    for (const SelectionFile::Entry& other : entries) {
      if (&other == &one) break;
      const SelectionRule &a = one.rule, &b = other.rule;
      const bool alike = a.operation == b.operation && a.way == b.way && a.ranks == b.ranks &&
                         (one.fabric == other.fabric || one.fabric == "*" || other.fabric == "*");
      if (!alike || a.from >= b.to || b.from >= a.to) continue;
      refuse("one rule for a size", "a second one for some of the sizes of line " + std::to_string(other.line),
             "let the ranges of an operation, a way and a number of ranks not overlap");
    }
  }

  static constexpr int most_ranks = 4096;
  static constexpr std::size_t most_entries = 2 * static_cast<std::size_t>(SelectionTable::most_rules);

  std::string_view text_;
  std::string_view rest_;  ///< of the line at hand
  std::string name_;
  int line_ = 0;
};

/// "0", "512", "64K", "inf".
inline std::string bytes_text(std::uint64_t bytes) {
  if (bytes == SelectionTable::no_end) return "inf";
  const char* const units[] = {"", "K", "M", "G"};
  int unit = 0;
  while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

}  // namespace detail

inline SelectionFile SelectionFile::head(std::string_view text, const std::string& name) {
  return detail::SelectionReader(text, name).read(false);
}

inline SelectionFile SelectionFile::parse(std::string_view text, const std::string& name) {
  return detail::SelectionReader(text, name).read(true);
}

inline std::string SelectionFile::text() const {
  std::string result = std::string(first_word) + " " + std::to_string(format) + "\n";
  for (int k = 0; k < Fingerprint::count; ++k) {
    if (!fingerprint.values[k].empty()) {
      result += std::string(Fingerprint::names[k]) + " " + detail::plain_text(fingerprint.values[k]) + "\n";
    }
  }
  result += "# operation fabric way ranks bytes algorithm\n";
  for (const Entry& entry : entries) {
    const SelectionRule& rule = entry.rule;
    std::string line = std::string(operation_name(rule.operation)) + " " + entry.fabric + " " + way_name(rule.way) +
                       " " + std::to_string(rule.ranks) + " " + detail::bytes_text(rule.from) + "-" +
                       detail::bytes_text(rule.to) + " " + algorithm_name(rule.algorithm);
    if (rule.lanes > 0) line += ":lanes=" + std::to_string(rule.lanes);
    if (!entry.comment.empty()) line += "  # " + detail::plain_text(entry.comment);
    result += line + "\n";
  }
  return result;
}

}  // namespace meshwise
