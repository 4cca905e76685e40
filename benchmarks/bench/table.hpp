// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "host.hpp"
#include "options.hpp"
#include "point.hpp"

namespace harness {

/// The lines on the standard output: the form of nccl-tests, whose columns come first and in its order, so that what
/// reads those reads these. Lines of text begin with '#'. Progress goes to the standard error if that is a terminal.
class Table {
 public:
  explicit Table(const Options& options);

  /// Of the whole run.
  void begin(const Host& host);
  /// Of one job: lines about ranks, by rank.
  void ranks(const std::vector<std::string>& lines);
  /// Of one operation in one form: what the columns mean.
  void section(const Point& like);
  void row(const Point& point);
  /// A remark, as a line of its own.
  void note(const std::string& text);
  /// Ends a section.
  void end();

  /// What is measured now, of how many points.
  void progress(const Point& point, std::size_t done, std::size_t all);

 private:
  void clear_progress();

  const Options& options_;
  bool terminal_;
  bool shown_ = false;
  std::int64_t wrong_ = 0;
  double bandwidth_ = 0;
  int measured_ = 0;
};

/// In about four digits, at most `width` characters: "0.065", "12.34", "1234.5", "56789".
std::string short_number(double value, int width);

}  // namespace harness
