// SPDX-License-Identifier: Apache-2.0
#include "../../examples/gpt/progress.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <initializer_list>
#include <optional>

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What is written to a stream, as a string.
class Capture {
 public:
  Capture() : stream_(open_memstream(&data_, &size_)) { REQUIRE(stream_ != nullptr); }
  ~Capture() {
    std::fclose(stream_);
    std::free(data_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return std::string(data_, size_);
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

double now = 0;
double fake_clock() { return now; }

// An environment variable for the length of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    if (old != nullptr) old_ = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::size_t count(const std::string& text, char wanted) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), wanted));
}

}  // namespace

TEST_CASE("progress: numbers as people read them") {
  CHECK(gpt::grouped(0) == "0");
  CHECK(gpt::grouped(999) == "999");
  CHECK(gpt::grouped(1000) == "1 000");
  CHECK(gpt::grouped(-123456) == "-123 456");
  CHECK(gpt::grouped(INT64_MIN) == "-9 223 372 036 854 775 808");
  CHECK(gpt::abbreviated(0) == "0");
  CHECK(gpt::abbreviated(0.5) == "0.50");
  CHECK(gpt::abbreviated(9.996) == "10.0");
  CHECK(gpt::abbreviated(12.34) == "12.3");
  CHECK(gpt::abbreviated(999.4) == "999");
  CHECK(gpt::abbreviated(999.6) == "1.00k");
  CHECK(gpt::abbreviated(12345) == "12.3k");
  CHECK(gpt::abbreviated(4.56e6) == "4.56M");
  CHECK(gpt::abbreviated(2e15) == "2000T");
  CHECK(gpt::clock_text(0) == "0:00");
  CHECK(gpt::clock_text(59.6) == "1:00");
  CHECK(gpt::clock_text(754) == "12:34");
  CHECK(gpt::clock_text(3723) == "1:02:03");
  CHECK(gpt::clock_text(NAN) == "-");
  CHECK(gpt::clock_text(INFINITY) == "-");
}

TEST_CASE("progress: without a terminal, whole lines now and then") {
  Capture capture;
  now = 100;
  {
    gpt::Progress progress(capture.stream(), {.interval = 10}, 40, 1000, fake_clock);
    for (int step = 1; step <= 40; ++step) {
      now += 1;
      progress.step(step, 5.0 / step);
      if (step == 15 || step == 40) progress.evaluated(2.5);
    }
  }
  const std::string text = capture.text();
  INFO(text);
  // After 10 s; at 15 the evaluation; after 25 and 35 s; at 40 the evaluation, which the end does not repeat.
  CHECK(count(text, '\n') == 5);
  CHECK(count(text, '\r') == 0);
  CHECK(count(text, '\x1b') == 0);
  CHECK(contains(text, "step 10/40  loss 0.500  1.00k tokens/s  0:10, 0:30 left\n"));
  CHECK(contains(text, "step 15/40  loss 0.333  held out 2.500  1.00k tokens/s  0:15, 0:25 left\n"));
  CHECK(contains(text, "step 40/40  loss 0.125  held out 2.500  1.00k tokens/s  0:40\n"));
}

TEST_CASE("progress: the end shows what nothing else has shown, once") {
  Capture capture;
  now = 0;
  {
    gpt::Progress progress(capture.stream(), {.interval = 10}, 3, 1, fake_clock);
    progress.step(1, 1.0);
    progress.step(2, 1.0);
    progress.finish();
    progress.finish();
  }
  CHECK(count(capture.text(), '\n') == 1);
  CHECK(contains(capture.text(), "step 2/3"));
}

TEST_CASE("progress: nothing to do, nothing shown") {
  Capture capture;
  { gpt::Progress progress(capture.stream(), {}, 0, 0, fake_clock); }
  { gpt::Progress progress(capture.stream(), {.in_place = true, .columns = 80}, 5, 1, fake_clock); }
  CHECK(capture.text().empty());
  gpt::Progress silent(nullptr, {.in_place = true}, 5, 1, fake_clock);
  silent.step(5, 1);
  silent.evaluated(1);
}

TEST_CASE("progress: on a terminal one line is rewritten, ten times a second at most, and ended") {
  for (const bool colour : {false, true}) {
    Capture capture;
    now = 0;
    {
      gpt::Progress progress(capture.stream(), {.in_place = true, .colour = colour, .columns = 100}, 1000, 10,
                             fake_clock);
      for (int step = 1; step <= 1000; ++step) {
        now += 0.01;
        progress.step(step, 1.0);
      }
      CHECK(count(capture.text(), '\n') == 0);
    }
    const std::string text = capture.text();
    CHECK(text.ends_with("\x1b[K\n"));
    CHECK(count(text, '\n') == 1);
    CHECK(count(text, '\r') >= 50);
    CHECK(count(text, '\r') <= 101);
    CHECK(contains(text, "\x1b[32m") == colour);
    CHECK(contains(text, "1.00k tokens/s"));
    CHECK(contains(text, "#] 1000/1000") == !colour);
  }
}

TEST_CASE("progress: the line fits the terminal, however narrow") {
  now = 0;
  gpt::Progress progress(nullptr, {.in_place = true}, 100, 10, fake_clock);
  now = 50;
  progress.step(50, 2.0);
  progress.evaluated(3.0);
  std::string widest;
  for (int width = 1; width <= 200; ++width) {
    const std::string line = progress.line(60, width);
    CHECK(line.size() <= static_cast<std::size_t>(width));
    CHECK(line.size() >= widest.size());
    widest = line;
  }
  CHECK(widest == "[############............]  50/100  loss 2.000  held out 3.000   0.20 tokens/s  1:00, 1:00 left");
}

TEST_CASE("progress: the rate leaves evaluations out and follows changes") {
  now = 0;
  gpt::Progress progress(nullptr, {}, 100, 100, fake_clock);
  for (int step = 1; step <= 20; ++step) {
    now += 1;
    progress.step(step, 1.0);
    now += 30;
    progress.evaluated(1.0);
  }
  CHECK(contains(progress.line(now, 0), " 100 tokens/s"));
  for (int step = 21; step <= 60; ++step) {
    now += 2;
    progress.step(step, 1.0);
  }
  CHECK(contains(progress.line(now, 0), " 50.0 tokens/s"));
}

TEST_CASE("progress: a terminal is one that is a terminal, can move its cursor, and has no veto on colour") {
  const int ends = posix_openpt(O_RDWR | O_NOCTTY);
  if (ends < 0 || grantpt(ends) != 0 || unlockpt(ends) != 0) {
    MESSAGE("no pseudo-terminals here");
    return;
  }
  const int terminal = open(ptsname(ends), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  const auto style = [&](const char* term, const char* no_colour) {
    const Variable a("TERM", term), b("NO_COLOR", no_colour);
    return gpt::ProgressStyle::of(terminal);
  };
  CHECK(style("xterm", nullptr).in_place);
  CHECK(style("xterm", nullptr).colour);
  CHECK(style("xterm", "").colour);
  CHECK(style("xterm", "1").in_place);
  CHECK(!style("xterm", "1").colour);
  CHECK(!style("dumb", nullptr).in_place);
  CHECK(!style("dumb", nullptr).colour);
  CHECK(!style(nullptr, nullptr).in_place);
  const int file = open("/dev/null", O_WRONLY);
  {
    const Variable term("TERM", "xterm");
    CHECK(!gpt::ProgressStyle::of(file).in_place);
    CHECK(!gpt::ProgressStyle::of(-1).in_place);
  }
  close(file);
  close(terminal);
  close(ends);
}

TEST_CASE("table: columns line up, whatever the alignment and the characters") {
  using Align = gpt::Column::Align;
  gpt::Table table({{"what", "", Align::left}, {"volume", "bytes", Align::right}, {"formula", "", Align::left}});
  table.row({"tp gather", gpt::grouped(1048576), "2·(n−1)/n·L"})
      .row({"dp", "7"})
      .rule()
      .row({"sum", "1 048 583", "", "x"});
  CHECK(table.text() ==
        "what          volume  formula\n"
        "               bytes\n"
        "---------------------------------\n"
        "tp gather  1 048 576  2·(n−1)/n·L\n"
        "dp                 7\n"
        "---------------------------------\n"
        "sum        1 048 583\n");
}

TEST_CASE("table: no units, no rows, no columns") {
  CHECK(gpt::Table({{"a"}, {"bc"}}).text() == "a  bc\n-----\n");
  CHECK(gpt::Table({}).row({"x"}).text().empty());
  Capture capture;
  gpt::Table({{"a"}}).row({"1"}).print(capture.stream());
  CHECK(capture.text() == "a\n-\n1\n");
}
