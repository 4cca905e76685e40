// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chart.hpp"
#include "page_table.hpp"
#include "round_trip.hpp"
#include "sizes.hpp"
#include "table.hpp"

namespace harness {
namespace {

/// The points of one operation on so many ranks.
struct Group {
  Verb verb{};
  int ranks = 0;
  std::vector<const Point*> points;

  std::string title() const {
    return std::string(verb_name(verb)) + " on " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  }
  std::string anchor() const { return std::string(verb_name(verb)) + "-" + std::to_string(ranks); }
};

std::vector<Group> groups_of(const Board& board) {
  std::vector<Group> groups;
  for (std::size_t k = 0; k < board.size(); ++k) {
    const Point& point = board[k];
    const auto same = [&](const Group& group) { return group.verb == point.verb && group.ranks == point.ranks; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(groups.end(), Group{point.verb, point.ranks, {}});
    group->points.push_back(&point);
  }
  return groups;
}

/// What tells the curves of a chart apart, in words: first whatever all have in common, then it is left away.
std::vector<std::string> words_of(const Point& point) {
  std::vector<std::string> words{fabric_name(point)};
  const bool chosen = point.algorithm == meshwise::Algorithm::automatic;
  words.emplace_back(chosen ? "auto" : meshwise::algorithm_name(point.algorithm));
  words.emplace_back(std::string(buffers_name(point)) + " buffers");
  words.emplace_back(std::string(cache_name(point)) + " caches");
  words.emplace_back(element_text(point.element));
  words.emplace_back(combines(point.verb) ? redop_name(point.redop) : "");
  words.emplace_back(point.root > 0 ? "root " + std::to_string(point.root) : "");
  return words;
}

class Drawing {
 public:
  Drawing(const Group& group, const PeerResults& peers) : group_(group) {
    for (const Point* point : group.points) {
      const std::vector<std::string> words = words_of(*point);
      varies_.resize(words.size());
      for (std::size_t k = 0; k < words.size(); ++k)
        varies_[k] = varies_[k] || words[k] != words_of(*group.points[0])[k];
    }
    limit();
    for (const Point* point : group.points) {
      add(*point, point->out_of_place, false);
      add(*point, point->in_place, true);
    }
    for (const PeerPoint& peer : peers.points) {
      if (peer.operation == verb_name(group.verb) && peer.ranks == group.ranks) add(peer);
    }
    for (Curve& curve : bandwidth_) sort(curve);
    for (Curve& curve : time_) sort(curve);
    // Of what is far below all that was measured nobody wants to see how far.
    double least = 0;
    for (const Curve& curve : time_) {
      for (const Curve::Dot& dot : curve.dots) least = !curve.plain && (least == 0 || dot.y < least) ? dot.y : least;
    }
    for (Curve& curve : time_) std::erase_if(curve.dots, [&](const Curve::Dot& dot) { return dot.y < least / 3; });
  }

  std::string text() const {
    const std::string title = group_.title();
    const std::string bandwidth = to_svg({title, "bus bandwidth in GB/s", bandwidth_});
    const std::string time = to_svg({title, "time in us", time_});
    if (bandwidth.empty() && time.empty()) return "";
    return "<div class=\"charts\">\n" + bandwidth + time + "</div>\n" + legend(bandwidth_);
  }

 private:
  static void sort(Curve& curve) {
    std::stable_sort(curve.dots.begin(), curve.dots.end(),
                     [](const Curve::Dot& a, const Curve::Dot& b) { return a.x < b.x; });
  }

  /// The place of a curve in both charts.
  std::size_t curve(const std::string& name, int colour, bool dashed) {
    for (std::size_t k = 0; k < bandwidth_.size(); ++k) {
      if (bandwidth_[k].name == name) return k;
    }
    Curve made;
    made.name = name;
    made.colour = colour;
    made.dashed = dashed;
    bandwidth_.push_back(made);
    time_.push_back(made);
    return bandwidth_.size() - 1;
  }

  /// The bus bandwidth at which an operation would move its bytes at the copy's rate; of several the best.
  void limit() {
    std::map<std::uint64_t, double> best;
    for (const Point* point : group_.points) {
      const Timing& timing = point->out_of_place.measured ? point->out_of_place : point->in_place;
      if (!(point->limit > 0) || !(timing.moved > 0)) continue;
      double& value = best[point->size];
      value = std::max(value, bus_bandwidth(*point, timing.moved / point->limit * 1e6));
    }
    const std::size_t at = curve("a copy of as many bytes (memory limit)", 0, false);
    for (Curve* one : {&bandwidth_[at], &time_[at]}) one->plain = true;
    for (const auto& [size, value] : best) bandwidth_[at].dots.push_back({static_cast<double>(size), value, ""});
    for (const auto& [size, value] : best) {
      const double bytes = static_cast<double>(size) * bus_factor(group_.verb, group_.ranks);
      if (value > 0) time_[at].dots.push_back({static_cast<double>(size), bytes / value * 1e-3, ""});
    }
  }

  void add(const Point& point, const Timing& timing, bool in_place) {
    if (!timing.measured) return;
    std::string name;
    const std::vector<std::string> words = words_of(point);
    for (std::size_t k = 0; k < words.size(); ++k) {
      if (varies_[k] && !words[k].empty()) name += (name.empty() ? "" : ", ") + words[k];
    }
    int& colour = colour_.emplace(name, static_cast<int>(colour_.size())).first->second;
    const std::string whole = (name.empty() ? "" : name + ", ") + (in_place ? "in place" : "out of place");
    const std::size_t at = curve(whole, colour, in_place);
    const double x = static_cast<double>(point.size), bandwidth = bus_bandwidth(point, timing.median);
    const std::string ran = point.chosen[0] != '\0' ? " (" + std::string(point.chosen) + ")" : "";
    const std::string title = whole + ran + "\n" + bytes_text(point.size) + ": " + short_number(timing.median, 8) +
                              " us, bus " + short_number(bandwidth, 7) + " GB/s\nback to back " +
                              short_number(timing.time, 8) + " us, p99 " + short_number(timing.most, 8) + " us, " +
                              short_number(percent_of_limit(point, timing), 5) + " % of the memory limit\nplacement " +
                              placement_between(point.round_trip_before, point.round_trip_after);
    bandwidth_[at].dots.push_back({x, bandwidth, title});
    time_[at].dots.push_back({x, timing.median, title});
  }

  void add(const PeerPoint& peer) {
    const std::string name = peer.name + (peer.in_place ? ", in place" : "");
    const std::size_t at = curve(name, -1, false);
    const double bandwidth = peer.bytes / peer.microseconds * 1e-3 * bus_factor(group_.verb, group_.ranks);
    const std::string title = name + (peer.detail.empty() ? "" : ": " + peer.detail) + "\n" +
                              bytes_text(static_cast<std::size_t>(peer.bytes)) + ": " +
                              short_number(peer.microseconds, 8) + " us, bus " + short_number(bandwidth, 7) + " GB/s";
    bandwidth_[at].dots.push_back({peer.bytes, bandwidth, title});
    time_[at].dots.push_back({peer.bytes, peer.microseconds, title});
  }

  const Group& group_;
  std::vector<bool> varies_;
  std::map<std::string, int> colour_;
  std::vector<Curve> bandwidth_, time_;
};

std::string host_table(const Options& options, const Host& host, const PeerResults& peers) {
  std::string caches;
  for (const Host::Cache& cache : host.caches) {
    caches += (caches.empty() ? "" : ", ") + cache.name + " " + cache.size + " (cores " + cache.shared + ")";
  }
  std::vector<std::pair<std::string, std::string>> rows{
      {"machine", host.processor + ", " + std::to_string(host.cores) + " of " + std::to_string(host.online) +
                      " cores, load " + short_number(host.load, 5) + " at the start"},
      {"caches", caches},
      {"system", host.system + ", huge pages " + host.huge_pages},
      {"built by", host.compiler},
      {"library", host.library},
      {"date", host.date},
      {"options", bytes_text(options.least) + " to " + bytes_text(options.most) +
                      ", checked calls for each point: " + std::to_string(options.checks)}};
  if (!peers.points.empty()) rows.emplace_back("peers from", peers.host);
  std::string text = "<table class=\"host\">\n";
  for (const auto& [name, value] : rows) text += "<tr><td>" + name + "</td><td>" + html(value) + "</td></tr>\n";
  return text + "</table>\n";
}

}  // namespace

std::string page(const Options& options, const Host& host, const Board& board, const PeerResults& peers) {
  const std::vector<Group> groups = groups_of(board);
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>meshwise-bench</title>\n<style>" +
      std::string(page_style) + "</style>\n</head>\n<body>\n<h1>meshwise-bench</h1>\n";
  text += host_table(options, host, peers);
  const std::int64_t wrong = board.wrong();
  text += wrong == 0 ? "<p class=\"good\">No wrong value.</p>\n"
                     : "<p class=\"bad\">" + std::to_string(wrong) + " wrong values: see the tables.</p>\n";
  text +=
      "<p>Bus bandwidth is size / time, times 2(n-1)/n for all_reduce, (n-1)/n for reduce_scatter, all_gather, "
      "all_to_all, gather and scatter, 1 for the others. Curves show the median call, which ends when the last rank "
      "has "
      "its result. Both axes are logarithmic; rest the pointer on a point for its figures.</p>\n<nav>\n";
  for (const Group& group : groups) text += "<a href=\"#" + group.anchor() + "\">" + group.title() + "</a>\n";
  text += "</nav>\n";
  for (const Group& group : groups) {
    const std::string drawing = Drawing(group, peers).text();
    text += "<h2 id=\"" + group.anchor() + "\">" + group.title() + "</h2>\n" + drawing;
    text += page_table(group.points, drawing.empty());
  }
  return text + "</body>\n</html>\n";
}

}  // namespace harness
