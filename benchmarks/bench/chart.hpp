// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace harness {

/// A curve: its look is a class of the page's style.
struct Curve {
  struct Dot {
    double x = 0;
    double y = 0;
    std::string title;  ///< shown while the pointer is over it
  };

  std::string name;
  int colour = 0;  ///< one of `colours`; -1: of what is not the library's
  bool dashed = false;
  bool plain = false;  ///< a line without dots
  std::vector<Dot> dots;
};

inline constexpr int colours = 10;

/// Both axes are logarithmic: x in bytes, by powers of two; y by powers of ten. What is not above 0 is left away.
struct Chart {
  std::string title;
  std::string y_name;
  std::vector<Curve> curves;
};

/// As an inline SVG; empty where there is nothing to draw.
std::string to_svg(const Chart& chart);

/// What the curves are, as an HTML list.
std::string legend(const std::vector<Curve>& curves);

/// The text with the characters escaped that HTML means otherwise.
std::string html(const std::string& text);

}  // namespace harness
