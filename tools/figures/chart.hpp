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

/// Where a chart's plot lies on its drawing, in pixels.
struct Area {
  double left;
  double top;
  double width;
  double height;
};

/// A plot with two linear axes: data in, pixels out.
class Chart {
 public:
  Chart(Svg& svg, const Area& area, Range x, Range y) : svg_(svg), area_(area), x_(x), y_(y) {}

  void XAxis(std::string_view title, double step);
  void YAxis(std::string_view title, double step);
  /// Only the grid of the x axis, for a plot that stands above another.
  void XGrid(double step);

  [[nodiscard]] Point At(double x, double y) const noexcept;
  void Line(Point from, Point to, const Stroke& stroke) {
    svg_.Line(At(from.x, from.y), At(to.x, to.y), stroke);
  }
  void Arrow(Point from, Point to, const Stroke& stroke) {
    svg_.Arrow(At(from.x, from.y), At(to.x, to.y), stroke);
  }
  void Path(std::span<const Point> points, const Stroke& stroke);
  /// As Path, but each value holds until the next point, and the last until `end`.
  void Stairs(std::span<const Point> points, double end, const Stroke& stroke);
  /// A horizontal line over the whole plot, its label at the right, above it.
  void Level(double y, std::string_view label, const Stroke& stroke);
  /// A label, moved by `dx` and `dy` pixels.
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
  double width;  ///< Of the whole entry, in pixels.
};

/// In one row, from `at` to the right.
void Legend(Svg& svg, Point at, std::span<const Key> keys);

void Heading(Svg& svg, std::string_view title, std::string_view under);

}  // namespace tidegate::figures
