// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "meshwise/core/detail/list.hpp"
#include "meshwise/core/detail/sort.hpp"
#include "meshwise/core/detail/sorted.hpp"
#include "meshwise/core/error.hpp"
#include "meshwise/layout/describe.hpp"

namespace meshwise {

namespace detail {

/// Text with the characters that mean something in XML replaced.
inline std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&apos;"; break;
      default: result += c;
    }
  }
  return result;
}

/// Indices of a dim that follow each other and that the same ranks hold.
struct PictureRun {
  std::size_t begin = 0;
  std::size_t size = 0;
  std::size_t part = 0;  ///< number of the combination of coordinates
  std::string holder;    ///< coordinates of the axes that shard the dim: "cp 1, tp 0"
};

/// A dim of a picture: all of its runs, in order, and how many indices a pixel stands for.
struct PictureSide {
  std::string name;
  std::size_t extent = 0;
  std::size_t parts = 1;
  List<PictureRun> runs;
};

inline constexpr std::size_t most_runs = 256;

inline PictureSide side_of(const LayoutValue& layout, int d, const LayoutNames& names, std::span<const int> sizes,
                           std::size_t extent, std::span<const std::size_t> counts) {
  PictureSide side{names.dims[static_cast<std::size_t>(d)], extent, 1, {}};
  std::array<int, LayoutValue::most_axes> at{};
  while (true) {
    std::string holder;
    for (int i = 0; i < layout.split[d]; ++i) {
      const auto axis = static_cast<std::size_t>(layout.order[d][i]);
      holder += (i == 0 ? "" : ", ") + names.axes[axis] + " " + std::to_string(at[axis]);
    }
    const Positions held = held_positions(
        layout, d, extent, sizes, std::span<const int>(at).first(static_cast<std::size_t>(layout.axes)), counts);
    for (const Progression& p : held.progressions()) {
      const std::size_t each = p.step == 1 ? p.count : 1;
      if (side.runs.size() + p.count / each > most_runs) {
        fail("to_svg", "at most " + std::to_string(most_runs) + " runs of indices in " + side.name, "more than that",
             "draw the layout with a smaller extent");
      }
      for (std::size_t i = 0; i < p.count; i += each) side.runs.push_back({p.at(i), each, side.parts - 1, holder});
    }
    int i = layout.split[d] - 1;
    for (; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(layout.order[d][i]);
      if (++at[axis] < sizes[axis]) break;
      at[axis] = 0;
    }
    if (i < 0) break;
    ++side.parts;
  }
  sort_stably(side.runs.begin(), side.runs.end(),
              [](const PictureRun& a, const PictureRun& b) { return a.begin < b.begin; });
  return side;
}

inline std::string attribute(const char* name, std::size_t value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
}

/// A light colour for part `part` of `parts`, all of them different: a walk around the hues.
inline std::string colour(std::size_t part, std::size_t parts) {
  const std::size_t place = part * 6 * 96 / larger<std::size_t>(parts, 1);
  const std::size_t rise = place % 96, sextant = place / 96;
  const std::array<std::array<std::size_t, 3>, 6> all{
      {{96, rise, 0}, {96 - rise, 96, 0}, {0, 96, rise}, {0, 96 - rise, 96}, {rise, 0, 96}, {96, 0, 96 - rise}}};
  char text[8];
  std::snprintf(text, sizeof text, "#%02zx%02zx%02zx", 156 + all[sextant][0], 156 + all[sextant][1],
                156 + all[sextant][2]);
  return text;
}

/// Places runs on a line of pixels: proportional to their sizes, but none too short to be seen.
inline std::vector<std::size_t> pixels(const PictureSide& side, std::size_t length) {
  std::vector<std::size_t> ends{0};
  for (const PictureRun& run : side.runs) {
    ends.push_back(ends.back() + larger<std::size_t>(run.size * length / larger<std::size_t>(side.extent, 1), 4));
  }
  return ends;
}

inline std::string svg_text(std::size_t x, std::size_t y, const std::string& text, const char* more = "") {
  return "<text" + attribute("x", x) + attribute("y", y) + more + ">" + escaped(text) + "</text>\n";
}

inline std::string svg_rectangle(std::size_t x, std::size_t y, std::size_t width, std::size_t height,
                                 const std::string& fill) {
  return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height) +
         " fill=\"" + fill + "\" stroke=\"#444\"/>";
}

/// "seq [0, 6)", or nothing on the side of a picture that is no dim.
inline std::string indices_text(const PictureSide& side, const PictureRun& run) {
  if (side.name.empty()) return "";
  return side.name + " [" + std::to_string(run.begin) + ", " + std::to_string(run.begin + run.size) + ")";
}

}  // namespace detail

/// A picture of who holds what: an SVG of the one or two dims that a layout shards, one rectangle for each block of
/// indices that the same ranks hold, labelled with their coordinates and coloured by part.
///
/// names: of all axes and dims. sizes: ranks along each axis. extents: of the whole tensor. counts: for each dim the
/// counts of a Counted one, or nothing if there is none. Self-contained text; cost: proportional to the blocks.
/// Errors: invalid_argument for more than two sharded dims, numbers of sizes or extents that do not fit the layout, and
/// dims that fall into more than 256 runs.
inline std::string to_svg(const LayoutValue& layout, const LayoutNames& names, std::span<const int> sizes,
                          std::span<const std::size_t> extents,
                          std::span<const std::span<const std::size_t>> counts = {}) {
  using detail::attribute;
  const auto require = [](std::size_t wanted, std::size_t found, const char* what) {
    if (wanted == found) return;
    fail("to_svg", std::to_string(wanted) + " " + what, std::to_string(found), "one for each, in the layout's order");
  };
  require(static_cast<std::size_t>(layout.axes), sizes.size(), "sizes of axes");
  require(static_cast<std::size_t>(layout.dims), extents.size(), "extents of dims");
  if (!counts.empty()) require(static_cast<std::size_t>(layout.dims), counts.size(), "lists of counts");
  detail::List<detail::PictureSide> sides;
  for (int d = 0; d < layout.dims; ++d) {
    if (layout.split[d] == 0) continue;
    const auto i = static_cast<std::size_t>(d);
    const std::span<const std::size_t> own = counts.empty() ? std::span<const std::size_t>() : counts[i];
    const int first = layout.order[d][0];
    if (layout.rule[first] == SplitRule::counted) {
      require(static_cast<std::size_t>(sizes[static_cast<std::size_t>(first)]), own.size(), "counts of a Counted dim");
    }
    sides.push_back(detail::side_of(layout, d, names, sizes, extents[i], own));
  }
  if (sides.size() > 2) {
    fail("to_svg", "at most two sharded dims", std::to_string(sides.size()), "draw the others replicated");
  }
  const std::string title = describe(layout, names);
  // Rows are the first sharded dim; one alone is drawn from left to right.
  detail::PictureSide one{"", 1, 1, {}};
  one.runs.push_back({0, 1, 0, ""});
  const detail::PictureSide& rows = sides.size() == 2 ? sides[0] : one;
  const detail::PictureSide& columns = sides.empty() ? one : sides.back();
  const std::size_t left = 90, top = 60;
  const std::vector<std::size_t> xs = detail::pixels(columns, 640);
  const std::vector<std::size_t> ys = detail::pixels(rows, sides.size() == 2 ? 320 : 60);
  const std::size_t parts = rows.parts * columns.parts;
  std::size_t copies = 1;
  std::string others;
  for (int a = 0; a < layout.axes; ++a) {
    const auto i = static_cast<std::size_t>(a);
    if (layout.is(a, PlacementKind::shard)) continue;
    copies *= static_cast<std::size_t>(sizes[i]);
    others += (others.empty() ? "" : ", ") + names.axes[i];
  }

  // What the colours mean, for as many as one can tell apart.
  const std::size_t keys = parts > 1 && parts <= 48 ? parts : 0, each_row = 4, key_width = 160;
  const std::size_t below = top + ys.back() + 24, key_top = below + (copies > 1 ? 12 : 0);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"" +
                    attribute("width", left + detail::larger(xs.back(), std::size_t{640}) + 20) +
                    attribute("height", key_top + (keys + each_row - 1) / each_row * 20 + 20) +
                    " font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n";
  svg += "<title>" + detail::escaped(title) + "</title>\n";
  svg += detail::svg_text(left, 22, title, " font-weight=\"bold\"");
  if (!sides.empty()) svg += detail::svg_text(left, 46, columns.name + ": " + std::to_string(columns.extent));
  if (sides.size() == 2) svg += detail::svg_text(8, top + 16, rows.name + ": " + std::to_string(rows.extent));
  std::vector<std::string> holders(parts);
  for (std::size_t r = 0; r < rows.runs.size(); ++r) {
    for (std::size_t c = 0; c < columns.runs.size(); ++c) {
      const detail::PictureRun &row = rows.runs[r], &column = columns.runs[c];
      const std::string holder = row.holder + (row.holder.empty() || column.holder.empty() ? "" : ", ") + column.holder;
      const std::size_t part = row.part * columns.parts + column.part;
      holders[part] = holder;
      const std::size_t x = left + xs[c], y = top + ys[r], width = xs[c + 1] - xs[c], height = ys[r + 1] - ys[r];
      std::string where = detail::indices_text(rows, row);
      where += (where.empty() || columns.name.empty() ? "" : " x ") + detail::indices_text(columns, column);
      svg += "<g><title>" + detail::escaped(where + (where.empty() ? "" : ": ") + (holder.empty() ? "all" : holder)) +
             "</title>" + detail::svg_rectangle(x, y, width, height, detail::colour(part, parts));
      // Only where it fits.
      if (holder.size() * 7 < width && height > 14) {
        svg += detail::svg_text(x + width / 2, y + height / 2 + 4, holder, " text-anchor=\"middle\"");
      }
      svg += "</g>\n";
    }
  }
  if (copies > 1) {
    const bool owed = detail::axes_with(layout, PlacementKind::partial) != 0;
    svg += detail::svg_text(left, below,
                            "each block is held by " + std::to_string(copies) + " ranks, along " + others +
                                (owed ? "; what is owed is combined over theirs" : ""));
  }
  std::size_t shown = 0;
  for (std::size_t part = 0; part < keys; ++part) {
    if (holders[part].empty()) continue;  // an empty part
    const std::size_t x = left + shown % each_row * key_width, y = key_top + shown / each_row * 20;
    svg += detail::svg_rectangle(x, y, 12, 12, detail::colour(part, parts)) + "\n" +
           detail::svg_text(x + 18, y + 11, holders[part]);
    ++shown;
  }
  return svg + "</svg>\n";
}

/// The same for a layout type. DimList: the dims of the tensor, as `Dims<...>`.
template <AnyLayout L, class DimList>
std::string to_svg(std::span<const int> sizes, std::span<const std::size_t> extents,
                   std::span<const std::span<const std::size_t>> counts = {}) {
  return to_svg(layout_value<L, DimList>, detail::names_on<L, DimList>(), sizes, extents, counts);
}

}  // namespace meshwise
