// SPDX-License-Identifier: Apache-2.0
#include "page_table.hpp"

#include "chart.hpp"
#include "round_trip.hpp"
#include "table.hpp"

namespace harness {
namespace {

std::string cell(const std::string& text, const char* style = nullptr) {
  return std::string("<td") + (style != nullptr ? " class=\"" + std::string(style) + "\"" : "") + ">" + html(text) +
         "</td>";
}

std::string figures(const Point& point, const Timing& timing) {
  if (!timing.measured) return "<td colspan=\"7\"></td>";
  const std::string wrong = timing.wrong < 0 ? "-" : std::to_string(timing.wrong);
  return cell(short_number(timing.time, 8)) + cell(short_number(bus_bandwidth(point, timing.time), 7)) +
         cell(wrong, timing.wrong > 0 ? "bad" : nullptr) + cell(short_number(timing.least, 8)) +
         cell(short_number(timing.median, 8)) + cell(short_number(timing.most, 8)) +
         cell(timing.moved > 0 ? short_number(percent_of_limit(point, timing), 5) : "-");
}

}  // namespace

std::string page_table(const std::vector<const Point*>& points, bool open) {
  const std::string columns =
      "<th>time us</th><th>bus GB/s</th><th>wrong</th><th>min</th><th>median</th><th>p99</th><th>% limit</th>";
  std::string text =
      std::string(open ? "<details open>" : "<details>") +
      "<summary>the figures</summary>\n<div class=\"scroll\"><table>\n<tr><th colspan=\"3\"></th><th "
      "colspan=\"7\">out of place</th><th colspan=\"7\">in place</th><th colspan=\"6\"></th></tr>\n"
      "<tr><th>bytes</th><th>count</th><th class=\"text\">type</th>" +
      columns + columns +
      "<th>placement</th><th class=\"text\">algorithm</th><th class=\"text\">fabric</th><th class=\"text\">buffers</th>"
      "<th class=\"text\">caches</th><th>root</th></tr>\n";
  for (const Point* point : points) {
    std::string algorithm = meshwise::algorithm_name(point->algorithm);
    if (point->chosen[0] != '\0') algorithm += " (" + std::string(point->chosen) + ")";
    std::string type = element_text(point->element);
    if (combines(point->verb)) type += std::string(" ") + redop_name(point->redop);
    text += "<tr>" + cell(std::to_string(point->size)) + cell(std::to_string(point->count)) + cell(type, "text") +
            figures(*point, point->out_of_place) + figures(*point, point->in_place) +
            cell(placement_between(point->round_trip_before, point->round_trip_after)) + cell(algorithm, "text") +
            cell(fabric_name(*point), "text") + cell(buffers_name(*point), "text") + cell(cache_name(*point), "text") +
            cell(point->root < 0 ? "-" : std::to_string(point->root)) + "</tr>\n";
  }
  return text + "</table></div></details>\n";
}

}  // namespace harness
