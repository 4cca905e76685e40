// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpt {

namespace detail {

/// printf into a string.
template <class... Values>
std::string print(const char* format, Values... values) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

/// Columns that UTF-8 text takes on a terminal, where every code point takes one.
inline std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace detail

/// A whole number with its thousands set apart: 1 234 567.
inline std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text += ' ';
    text += digits[i];
  }
  return text;
}

/// A rate or size to three digits: 0, 12.3, 999, 12.3k, 4.56M.
inline std::string abbreviated(double value) {
  const char* const suffix[] = {"", "k", "M", "G", "T"};
  std::size_t power = 0;
  while (std::abs(value) >= 999.5 && power < 4) {
    value /= 1000;
    ++power;
  }
  const double size = std::abs(value);
  const int digits = size == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return detail::print("%.*f%s", digits, value, suffix[power]);
}

/// Seconds as 0:07, 12:34 or 1:02:03; "-" when unknown.
inline std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const long all = std::lround(seconds), hours = all / 3600, minutes = all / 60 % 60, rest = all % 60;
  return hours > 0 ? detail::print("%ld:%02ld:%02ld", hours, minutes, rest) : detail::print("%ld:%02ld", minutes, rest);
}

/// How a Progress may write to its stream.
struct ProgressStyle {
  bool in_place = false;  ///< one line that is rewritten; otherwise whole lines, now and then
  bool colour = false;
  int columns = 0;         ///< of the terminal; 0: ask it before every line, or 80
  double interval = 10.0;  ///< least seconds between two whole lines

  /// In place on a terminal that can move its cursor; in colour unless NO_COLOR says no
  /// (https://no-color.org).
  static ProgressStyle of(int descriptor) {
    const auto variable = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string_view(value == nullptr ? "" : value);
    };
    ProgressStyle style;
    style.in_place = isatty(descriptor) == 1 && !variable("TERM").empty() && variable("TERM") != "dumb";
    style.colour = style.in_place && variable("NO_COLOR").empty();
    return style;
  }
};

/// Shows how a training goes on: step, losses, tokens per second, time. For one rank; the others have none.
///
/// In place it draws at most ten times a second; otherwise it writes a line after each evaluation, every
/// `interval` seconds between them, and at the end. Time spent between a step and the evaluation that follows
/// counts for the remaining time, not for the rate. Lifetime: finish() or the destructor ends the line, so
/// that an error is printed on one of its own.
class Progress {
 public:
  using Clock = double (*)();

  static double monotonic_seconds() {
    std::timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  /// `stream`: usually stderr, null for silence.
  Progress(std::FILE* stream, ProgressStyle style, std::int64_t steps, std::int64_t tokens_per_step,
           Clock clock = monotonic_seconds)
      : stream_(stream),
        style_(style),
        steps_(steps),
        tokens_(static_cast<double>(tokens_per_step)),
        clock_(clock),
        start_(clock()),
        last_step_(start_),
        last_shown_(start_) {}

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  /// After every step: the number of steps done and the training loss.
  void step(std::int64_t done, double loss) {
    const double now = clock_();
    const double seconds = now - last_step_;
    const double keep = std::exp(-seconds / 5);  // a mean over about the last five seconds
    recent_tokens_ = recent_tokens_ * keep + tokens_;
    recent_seconds_ = recent_seconds_ * keep + seconds;
    last_step_ = now;
    done_ = done;
    loss_ = loss;
    unseen_ = true;
    const double wait = style_.in_place ? 0.1 : style_.interval;
    if (now - last_shown_ >= wait || (style_.in_place && done_ == steps_)) show(now);
  }

  /// After an evaluation: the loss on the part of the text that is held out.
  void evaluated(double held_out_loss) {
    last_step_ = clock_();
    held_out_ = held_out_loss;
    show(last_step_);
  }

  /// Shows what has not been shown and ends the line. Later calls do nothing until the next step.
  void finish() {
    if (unseen_) show(clock_());
    if (style_.in_place && drawn_ && stream_ != nullptr) {
      std::fputc('\n', stream_);
      std::fflush(stream_);
    }
    drawn_ = false;
  }

  /// The line as it stands, cut to so many columns.
  std::string line(double now, int width) const {
    const std::string total = std::to_string(steps_), done = std::to_string(done_);
    const double fraction = steps_ > 0 ? static_cast<double>(done_) / static_cast<double>(steps_) : 1;
    const double left = done_ > 0 ? (now - start_) * (1 - fraction) / fraction : NAN;
    const double rate = recent_seconds_ > 0 ? recent_tokens_ / recent_seconds_ : 0;
    const auto padded = [&](const std::string& number, std::size_t columns) {
      return std::string(columns - std::min(columns, number.size()), ' ') + number;  // keeps a rewritten line still
    };
    std::string text = style_.in_place ? "" : "step ";
    text += padded(done, total.size()) + "/" + total;
    text += "  loss " + (done_ > 0 ? detail::print("%.3f", loss_) : std::string("-"));
    if (!std::isnan(held_out_)) text += "  held out " + detail::print("%.3f", held_out_);
    text += "  " + padded(abbreviated(rate), style_.in_place ? 5 : 0) + " tokens/s  " + clock_text(now - start_);
    if (done_ < steps_) text += ", " + clock_text(left) + " left";
    // The bar takes what is left of the line, and goes first when there is no room for it.
    const int room = std::min(width - static_cast<int>(text.size()) - 3, 24);
    if (style_.in_place && room >= 4) {
      const int full = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * room));
      std::string bar(static_cast<std::size_t>(room), '.');
      std::fill_n(bar.begin(), full, '#');
      if (style_.colour) bar.insert(static_cast<std::size_t>(full), "\x1b[0m").insert(0, "\x1b[32m");
      return "[" + bar + "] " + text;
    }
    if (style_.in_place && width > 0) text.resize(std::min(text.size(), static_cast<std::size_t>(width)));
    return text;
  }

 private:
  int width() const {
    // The last column would wrap on some terminals. Never 0, which would mean that nothing is cut.
    if (style_.columns > 0) return std::max(style_.columns - 1, 1);
    winsize size{};
    const bool known = ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return std::max((known ? size.ws_col : 80) - 1, 1);
  }

  void show(double now) {
    unseen_ = false;
    last_shown_ = now;
    if (stream_ == nullptr) return;
    if (style_.in_place) {
      std::fprintf(stream_, "\r%s\x1b[K", line(now, width()).c_str());
      drawn_ = true;
    } else {
      std::fprintf(stream_, "%s\n", line(now, 0).c_str());
    }
    std::fflush(stream_);
  }

  std::FILE* stream_;
  ProgressStyle style_;
  std::int64_t steps_;
  double tokens_;
  Clock clock_;
  double start_;
  double last_step_;
  double last_shown_;
  double recent_tokens_ = 0;
  double recent_seconds_ = 0;
  std::int64_t done_ = 0;
  double loss_ = NAN;
  double held_out_ = NAN;
  bool unseen_ = false;
  bool drawn_ = false;
};

/// One column of a Table. Numbers read best aligned right.
struct Column {
  enum class Align : std::uint8_t { left, right };

  std::string title;
  std::string unit{};  ///< shown under the title; may be empty
  Align align = Align::left;
};

/// Rows of text set in aligned columns, for results on stdout. The last column is not padded.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A row; cells that are missing are empty. Errors: none, cells beyond the last column are dropped.
  Table& row(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
    return *this;
  }

  /// A line across the table, between what is above and what comes below.
  Table& rule() {
    rows_.emplace_back();
    return *this;
  }

  std::string text() const {
    if (columns_.empty()) return {};
    std::vector<std::string> titles, units;
    for (const Column& column : columns_) {
      titles.push_back(column.title);
      units.push_back(column.unit);
    }
    std::vector<std::size_t> widths(columns_.size());
    const auto measure = [&](const std::vector<std::string>& cells) {
      for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], detail::columns(cells[c]));
    };
    measure(titles);
    measure(units);
    for (const auto& cells : rows_) measure(cells);
    std::size_t across = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) across += width;
    const std::string rule = std::string(across, '-') + "\n";

    const auto line = [&](const std::vector<std::string>& cells) {
      std::string text;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string space(widths[c] - detail::columns(cells[c]), ' ');
        text += c == 0 ? "" : "  ";
        text += columns_[c].align == Column::Align::right ? space + cells[c] : cells[c] + space;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      return text + "\n";
    };
    std::string text = line(titles);
    if (std::any_of(units.begin(), units.end(), [](const std::string& unit) { return !unit.empty(); })) {
      text += line(units);
    }
    text += rule;
    for (const auto& cells : rows_) text += cells.empty() ? rule : line(cells);
    return text;
  }

  void print(std::FILE* stream = stdout) const { std::fputs(text().c_str(), stream); }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace gpt
