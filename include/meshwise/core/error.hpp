// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace meshwise {

/// What kind of fault an Error reports.
enum class Code : std::uint8_t {
  invalid_argument,  ///< the caller's own arguments cannot work
  mismatch,          ///< ranks called different operations, or the same one with different arguments
  timed_out,         ///< a wait reached its deadline
  aborted,           ///< another rank failed, or abort() was called; the report carries the first cause
  peer_left,         ///< a rank that was waited for has ended
  unsupported,       ///< the fabric or the algorithm cannot do this
  out_of_memory,     ///< an allocation failed
};

/// The name of a code, such as "timed_out".
constexpr const char* code_name(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid_argument";
    case Code::mismatch: return "mismatch";
    case Code::timed_out: return "timed_out";
    case Code::aborted: return "aborted";
    case Code::peer_left: return "peer_left";
    case Code::unsupported: return "unsupported";
    case Code::out_of_memory: return "out_of_memory";
  }
  return "unknown";
}

/// Everything that is known about a fault; fields that do not apply stay empty.
struct Report {
  Code code = Code::invalid_argument;
  std::string operation;       ///< the function that failed, as the user spells it
  std::string origin;          ///< where the first error was, if it was in another call or on another rank
  std::string expected;        ///< what would have been right, with its value
  std::string found;           ///< what was there instead, with its value
  std::string remedy;          ///< what to do about it
  std::string axis;            ///< mesh axis, when the communicator belongs to one
  int rank = -1;               ///< the rank that reports, in its communicator
  std::vector<int> ranks;      ///< other ranks that take part in the fault
  std::uint64_t sequence = 0;  ///< number of the operation on its communicator, from 1
};

/// The one exception type of the library: a Report with a one-line text.
///
/// Lifetime: a value; copying keeps the report. `what()` is one line: operation, rank, axis, both values, remedy.
class Error : public std::exception {
 public:
  explicit Error(Report report) : report_(std::move(report)), text_(compose(report_)) {}

  const Report& report() const noexcept { return report_; }
  Code code() const noexcept { return report_.code; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  static std::string compose(const Report& r) {
    std::string text = r.operation.empty() ? std::string("meshwise") : r.operation;
    std::string where;
    const auto add = [&where](const std::string& part) { where += (where.empty() ? "" : ", ") + part; };
    if (r.rank >= 0) add("rank " + std::to_string(r.rank));
    if (!r.axis.empty()) add("axis " + r.axis);
    if (r.sequence != 0) add("call " + std::to_string(r.sequence));
    if (!where.empty()) text += " (" + where + ")";
    text += ": ";
    if (!r.origin.empty()) text += "stopped by " + r.origin + ": ";
    if (!r.expected.empty()) text += "expected " + r.expected + ", ";
    text += r.expected.empty() ? r.found : "found " + r.found;
    if (!r.remedy.empty()) text += "; " + r.remedy;
    return text;
  }

  Report report_;
  std::string text_;
};

/// Throws an Error for bad arguments: who checked, what was expected, what was found, and the remedy.
[[noreturn]] inline void fail(std::string operation, std::string expected, std::string found, std::string remedy,
                              int rank = -1) {
  Report report;
  report.operation = std::move(operation);
  report.expected = std::move(expected);
  report.found = std::move(found);
  report.remedy = std::move(remedy);
  report.rank = rank;
  throw Error(std::move(report));
}

}  // namespace meshwise
