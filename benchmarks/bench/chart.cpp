// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "sizes.hpp"

namespace harness {
namespace {

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

/// "0.01", "5", "2000".
std::string tick_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 1e5 ? "%.4g" : "%.0e", value);
  return text;
}

std::string style_of(const Curve& curve) {
  std::string style = "other";
  if (curve.plain) {
    style = "limit";
  } else if (curve.colour >= 0) {
    style = "c";
    style += std::to_string(curve.colour % colours);
  }
  if (curve.dashed) style += " dashed";
  return style;
}

/// The drawing area, and where values lie in it.
class Frame {
 public:
  static constexpr double width = 640, height = 380, left = 62, right = 14, top = 30, bottom = 46;

  explicit Frame(const Chart& chart) {
    for (const Curve& curve : chart.curves) {
      for (const Curve::Dot& dot : curve.dots) {
        if (!(dot.x > 0) || !(dot.y > 0)) continue;
        const double x = std::log2(dot.x), y = std::log10(dot.y);
        x0_ = empty_ ? x : std::min(x0_, x);
        x1_ = empty_ ? x : std::max(x1_, x);
        y0_ = empty_ ? y : std::min(y0_, y);
        y1_ = empty_ ? y : std::max(y1_, y);
        empty_ = false;
      }
    }
    // A little more than the values, and something where there is only one.
    const double wide = std::max(0.3, 0.02 * (x1_ - x0_)), high = std::max(0.06, 0.05 * (y1_ - y0_));
    x0_ -= wide, x1_ += wide, y0_ -= high, y1_ += high;
  }

  bool empty() const { return empty_; }
  double x(double bytes) const { return left + (std::log2(bytes) - x0_) / (x1_ - x0_) * (width - left - right); }
  double y(double value) const {
    return height - bottom - (std::log10(value) - y0_) / (y1_ - y0_) * (height - top - bottom);
  }

  std::string x_axis() const {
    std::string text;
    const int first = static_cast<int>(std::ceil(x0_)), last = static_cast<int>(std::floor(x1_));
    const int step = last - first > 20 ? 4 : last - first > 9 ? 2 : 1;
    for (int k = first; k <= last; ++k) {
      if (k < 0 || k % step != 0) continue;
      const double at = x(std::ldexp(1.0, k));
      text += line(at, top, at, height - bottom) +
              label(at, height - bottom + 18, "middle", bytes_text(std::size_t{1} << std::min(k, 62)));
    }
    return text + label((left + width - right) / 2, height - 8, "middle", "bytes");
  }

  std::string y_axis() const {
    std::string text;
    const bool dense = y1_ - y0_ < 2.2;
    for (int k = static_cast<int>(std::floor(y0_)); k <= static_cast<int>(std::ceil(y1_)); ++k) {
      for (const double part : {1.0, 2.0, 5.0}) {
        const double value = part * std::pow(10.0, k);
        if (std::log10(value) < y0_ || std::log10(value) > y1_ || (part > 1 && !dense)) continue;
        text += line(left, y(value), width - right, y(value)) + label(left - 7, y(value) + 4, "end", tick_text(value));
      }
    }
    return text;
  }

  static std::string label(double x, double y, const char* anchor, const std::string& text, const char* style = "") {
    return "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" text-anchor=\"" + anchor + "\" class=\"" + style +
           "\">" + html(text) + "</text>\n";
  }

 private:
  static std::string line(double x1, double y1, double x2, double y2) {
    return "<line class=\"grid\" x1=\"" + decimal(x1) + "\" y1=\"" + decimal(y1) + "\" x2=\"" + decimal(x2) +
           "\" y2=\"" + decimal(y2) + "\"/>\n";
  }

  bool empty_ = true;
  double x0_ = 0, x1_ = 0, y0_ = 0, y1_ = 0;
};

std::string drawn(const Curve& curve, const Frame& frame) {
  std::string points, dots;
  for (const Curve::Dot& dot : curve.dots) {
    if (!(dot.x > 0) || !(dot.y > 0)) continue;
    const std::string x = decimal(frame.x(dot.x)), y = decimal(frame.y(dot.y));
    points += x + "," + y + " ";
    if (curve.plain) continue;
    dots += "<g class=\"dot\"><circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"2.6\"/><circle class=\"reach\" cx=\"" + x +
            "\" cy=\"" + y + "\" r=\"9\"/><title>" + html(dot.title) + "</title></g>\n";
  }
  return "<g class=\"" + style_of(curve) + "\"><polyline points=\"" + points + "\"/>\n" + dots + "</g>\n";
}

}  // namespace

std::string html(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
    }
  }
  return result;
}

std::string to_svg(const Chart& chart) {
  const Frame frame(chart);
  if (frame.empty()) return "";
  std::string text = "<svg viewBox=\"0 0 " + decimal(Frame::width) + " " + decimal(Frame::height) +
                     "\" role=\"img\" aria-label=\"" + html(chart.title) + "\">\n";
  text += Frame::label(Frame::left, 18, "start", chart.title + ", " + chart.y_name, "title");
  text += frame.x_axis() + frame.y_axis();
  for (const Curve& curve : chart.curves) text += drawn(curve, frame);
  return text + "</svg>\n";
}

std::string legend(const std::vector<Curve>& curves) {
  std::string text = "<ul class=\"legend\">\n";
  for (const Curve& curve : curves) {
    text += "<li><svg viewBox=\"0 0 30 10\" class=\"key\"><g class=\"" + style_of(curve) +
            "\"><polyline points=\"1,5 29,5\"/>" + (curve.plain ? "" : "<circle cx=\"15\" cy=\"5\" r=\"2.6\"/>") +
            "</g></svg>" + html(curve.name) + "</li>\n";
  }
  return text + "</ul>\n";
}

}  // namespace harness
