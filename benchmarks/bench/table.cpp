// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <unistd.h>

#include <cmath>

#include "round_trip.hpp"
#include "sizes.hpp"

namespace harness {
namespace {

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

void forms(const Options& options, const char* out_of_place, const char* in_place) {
  std::printf("%s%s", out_of_place, in_place);
  if (options.out_of_place) std::printf(" %s", "|      min   median      p99   %mem");
  if (options.in_place) std::printf(" %s", "|      min   median      p99   %mem");
}

std::string form(const Point& point, const Timing& timing) {
  if (!timing.measured) return "      N/A     N/A     N/A    N/A";
  const double time = timing.time;
  return right(short_number(time, 8), 9) + right(short_number(algorithm_bandwidth(point, time), 7), 8) +
         right(short_number(bus_bandwidth(point, time), 7), 8) +
         right(timing.wrong < 0 ? "N/A" : std::to_string(timing.wrong), 7);
}

std::string spread(const Point& point, const Timing& timing) {
  if (!timing.measured) return " |      N/A      N/A      N/A    N/A";
  const double percent = percent_of_limit(point, timing);
  return " | " + right(short_number(timing.least, 8), 8) + right(short_number(timing.median, 8), 9) +
         right(short_number(timing.most, 8), 9) + right(timing.moved > 0 ? short_number(percent, 5) : "N/A", 7);
}

}  // namespace

std::string short_number(double value, int width) {
  char text[48];
  const double size = std::fabs(value);
  const int decimals = size < 10 ? 3 : size < 100 ? 2 : size < 10'000 ? 1 : 0;
  int length = std::snprintf(text, sizeof text, "%.*f", std::min(decimals, std::max(0, width - 2)), value);
  if (length > width) length = std::snprintf(text, sizeof text, "%.2g", value);
  return {text, static_cast<std::size_t>(length)};
}

Table::Table(const Options& options) : options_(options), terminal_(isatty(STDERR_FILENO) != 0) {}

void Table::begin(const Host& host) {
  const Options& o = options_;
  std::printf("# meshwise-bench: minBytes %s maxBytes %s step: %s(%s) warmup iters: %d iters: %s validation: %d\n",
              bytes_text(o.least).c_str(), bytes_text(o.most).c_str(),
              o.step > 0 ? bytes_text(o.step).c_str() : short_number(o.factor, 5).c_str(),
              o.step > 0 ? "bytes" : "factor", o.warm_up,
              o.iterations > 0 ? std::to_string(o.iterations).c_str() : "by time", o.checks);
  std::printf("# %s, %s on %s: %s, %d of %d cores, load %.2f\n", host.date.c_str(), host.library.c_str(),
              host.name.c_str(), host.processor.c_str(), host.cores, host.online, host.load);
  std::string caches;
  for (const Host::Cache& cache : host.caches) {
    caches += ", " + cache.name + " " + cache.size + " shared by cores " + cache.shared;
  }
  std::printf("# %s, %s, huge pages %s%s\n", host.system.c_str(), host.compiler.c_str(), host.huge_pages.c_str(),
              caches.c_str());
}

void Table::ranks(const std::vector<std::string>& lines) {
  clear_progress();
  std::printf("#\n# Using ranks\n");
  for (const std::string& line : lines) std::printf("#  %s\n", line.c_str());
}

void Table::section(const Point& like) {
  clear_progress();
  wrong_ = 0;
  bandwidth_ = 0;
  measured_ = 0;
  std::printf("#\n# %s on %d rank%s, %s\n#\n", verb_name(like.verb), like.ranks, like.ranks == 1 ? "" : "s",
              fabric_name(like));
  std::printf("#%54s", "");
  forms(options_, "            out-of-place        ", "              in-place          ");
  std::printf("\n#%12s %13s %9s %7s %8s", "size", "count", "type", "redop", "root");
  const char* const columns = "     time   algbw   busbw #wrong";
  forms(options_, columns, columns);
  std::printf(" | %9s  %s\n", "placement", "algorithm, buffers, caches");
  std::printf("#%12s %13s %9s %7s %8s", "(B)", "(elements)", "", "", "");
  const char* const units = "     (us)  (GB/s)  (GB/s)       ";
  std::printf("%s%s\n", units, units);
  std::fflush(stdout);
}

void Table::row(const Point& point) {
  clear_progress();
  const bool data = point.verb != Verb::barrier;
  std::printf(" %12llu %13llu %9s %7s %8d", static_cast<unsigned long long>(point.size),
              static_cast<unsigned long long>(point.count), data ? element_text(point.element) : "none",
              combines(point.verb) ? redop_name(point.redop) : "none", point.root);
  std::printf("%s%s", form(point, point.out_of_place).c_str(), form(point, point.in_place).c_str());
  if (options_.out_of_place) std::printf("%s", spread(point, point.out_of_place).c_str());
  if (options_.in_place) std::printf("%s", spread(point, point.in_place).c_str());
  const bool chosen = point.algorithm == meshwise::Algorithm::automatic;
  std::string text = chosen ? "auto" : meshwise::algorithm_name(point.algorithm);
  if (chosen && point.chosen[0] != '\0') text += std::string("(") + point.chosen + ")";
  std::printf(" | %9s  %s, %s, %s\n", placement_between(point.round_trip_before, point.round_trip_after).c_str(),
              text.c_str(), buffers_name(point), cache_name(point));
  std::fflush(stdout);
  for (const Timing* timing : {&point.out_of_place, &point.in_place}) {
    if (!timing->measured) continue;
    wrong_ += std::max<std::int64_t>(0, timing->wrong);
    bandwidth_ += bus_bandwidth(point, timing->time);
    ++measured_;
  }
}

void Table::note(const std::string& text) {
  clear_progress();
  std::printf("# %s\n", text.c_str());
  std::fflush(stdout);
}

void Table::end() {
  clear_progress();
  std::printf("# Out of bounds values : %lld %s\n", static_cast<long long>(wrong_), wrong_ == 0 ? "OK" : "FAILED");
  std::printf("# Avg bus bandwidth    : %g\n", measured_ > 0 ? bandwidth_ / measured_ : 0);
  std::fflush(stdout);
}

void Table::progress(const Point& point, std::size_t done, std::size_t all) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\033[K[%zu/%zu] %s of %s on %d ranks, %s", done + 1, all, verb_name(point.verb),
               bytes_text(point.size).c_str(), point.ranks, meshwise::algorithm_name(point.algorithm));
  std::fflush(stderr);
  shown_ = true;
}

void Table::clear_progress() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace harness
