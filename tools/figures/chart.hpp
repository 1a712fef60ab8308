// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "svg.hpp"

namespace tidegate::figures {

struct Range {
  double from;
  double to;
};

/// Position of a chart's plot in its drawing, in pixels.
struct Area {
  double left;
  double top;
  double width;
  double height;
};

/// A plot with two linear axes: converts data to pixels.
class Chart {
 public:
  Chart(Svg& svg, const Area& area, Range x, Range y) : svg_(svg), area_(area), x_(x), y_(y) {}

  void XAxis(std::string_view title, double step);
  void YAxis(std::string_view title, double step);
  /// Draws only the grid of the x axis, for a plot that is above another one.
  void XGrid(double step);

  [[nodiscard]] Point At(double x, double y) const noexcept;
  void Line(Point from, Point to, const Stroke& stroke) {
    svg_.Line(At(from.x, from.y), At(to.x, to.y), stroke);
  }
  void Arrow(Point from, Point to, const Stroke& stroke) {
    svg_.Arrow(At(from.x, from.y), At(to.x, to.y), stroke);
  }
  void Path(std::span<const Point> points, const Stroke& stroke);
  /// Like Path(), but each value holds until the next point, and the last value until `end`.
  void Stairs(std::span<const Point> points, double end, const Stroke& stroke);
  /// Draws a horizontal line over the whole plot, with its label above its right end.
  void Level(double y, std::string_view label, const Stroke& stroke);
  /// Draws a label, moved by `dx` and `dy` pixels.
  void Note(Point at, double dx, double dy, std::string_view text, const Font& font = {});

  [[nodiscard]] Svg& svg() const noexcept { return svg_; }

 private:
  Svg& svg_;
  Area area_;
  Range x_;
  Range y_;
};

/// One entry of a legend.
struct Key {
  enum class Mark { kLine, kDash, kDisc, kCross, kBox, kFrame };
  Mark mark;
  std::string_view colour;
  std::string_view text;
  double width;  ///< Width of the whole entry, in pixels.
};

/// Draws the entries in one row, from `at` to the right.
void Legend(Svg& svg, Point at, std::span<const Key> keys);

void Heading(Svg& svg, std::string_view title, std::string_view under);

}  // namespace tidegate::figures
