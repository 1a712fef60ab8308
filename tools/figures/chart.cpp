// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include <cmath>

namespace tidegate::figures {
namespace {

constexpr Font kTick{.size = 11, .colour = kFaint, .anchor = Anchor::kMiddle};
constexpr Font kTitle{.size = 12, .colour = kFaint, .anchor = Anchor::kMiddle};

/// Calls `visit` with every multiple of `step` in `range`.
template <class Visit>
void Multiples(const Range& range, double step, Visit visit) {
  constexpr double kSlack = 1e-9;
  for (double i = std::ceil(range.from / step - kSlack); i * step <= range.to + kSlack; ++i) {
    visit(i * step);
  }
}

}  // namespace

Point Chart::At(double x, double y) const noexcept {
  return {area_.left + (x - x_.from) / (x_.to - x_.from) * area_.width,
          area_.top + (y_.to - y) / (y_.to - y_.from) * area_.height};
}

void Chart::XGrid(double step) {
  Multiples(x_, step, [&](double x) { Line({x, y_.from}, {x, y_.to}, {kGrid, 1}); });
}

void Chart::XAxis(std::string_view title, double step) {
  XGrid(step);
  const double bottom = area_.top + area_.height;
  Multiples(x_, step, [&](double x) { svg_.Text({At(x, 0).x, bottom + 16}, Number(x, 2), kTick); });
  svg_.Line({area_.left, bottom}, {area_.left + area_.width, bottom}, {kFaint, 1});
  svg_.Text({area_.left + area_.width / 2, bottom + 34}, title, kTitle);
}

void Chart::YAxis(std::string_view title, double step) {
  Font tick = kTick;
  tick.anchor = Anchor::kEnd;
  Multiples(y_, step, [&](double y) {
    Line({x_.from, y}, {x_.to, y}, {kGrid, 1});
    svg_.Text({area_.left - 7, At(0, y).y + 4}, Number(y, 2), tick);
  });
  svg_.Line({area_.left, area_.top}, {area_.left, area_.top + area_.height}, {kFaint, 1});
  svg_.TextUp({area_.left - 38, area_.top + area_.height / 2}, title, kTitle);
}

void Chart::Path(std::span<const Point> points, const Stroke& stroke) {
  std::vector<Point> pixels;
  pixels.reserve(points.size());
  for (const Point& p : points) pixels.push_back(At(p.x, p.y));
  svg_.Path(pixels, stroke);
}

void Chart::Stairs(std::span<const Point> points, double end, const Stroke& stroke) {
  std::vector<Point> corners;
  for (const Point& p : points) {
    if (p.x > end) break;
    if (!corners.empty()) {
      if (corners.back().y == p.y) continue;
      corners.push_back({p.x, corners.back().y});
    }
    corners.push_back(p);
  }
  if (!corners.empty()) corners.push_back({end, corners.back().y});
  Path(corners, stroke);
}

void Chart::Level(double y, std::string_view label, const Stroke& stroke) {
  Line({x_.from, y}, {x_.to, y}, stroke);
  Note({x_.to, y}, -4, -5, label, {.size = 11, .colour = stroke.colour, .anchor = Anchor::kEnd});
}

void Chart::Note(Point at, double dx, double dy, std::string_view text, const Font& font) {
  const Point pixel = At(at.x, at.y);
  svg_.Text({pixel.x + dx, pixel.y + dy}, text, font);
}

void Legend(Svg& svg, Point at, std::span<const Key> keys) {
  constexpr double kMark = 22;
  for (const Key& key : keys) {
    const Point middle{at.x + kMark / 2, at.y - 4};
    const Point left{at.x, middle.y};
    const Point right{at.x + kMark, middle.y};
    switch (key.mark) {
      case Key::Mark::kLine: svg.Line(left, right, {key.colour, 2}); break;
      case Key::Mark::kDash: svg.Line(left, right, {key.colour, 1.5, "5 4"}); break;
      case Key::Mark::kDisc: svg.Disc(middle, 4, key.colour); break;
      case Key::Mark::kCross: svg.Cross(middle, 4, {key.colour, 2}); break;
      case Key::Mark::kBox: svg.Box({left.x, left.y - 5}, kMark, 10, key.colour); break;
      case Key::Mark::kFrame:
        svg.Frame({left.x, left.y - 5}, kMark, 10, {key.colour, 1, "3 2"});
        break;
    }
    svg.Text({at.x + kMark + 6, at.y}, key.text, {.size = 11});
    at.x += key.width;
  }
}

void Heading(Svg& svg, std::string_view title, std::string_view under) {
  svg.Text({20, 28}, title, {.size = 15, .weight = Weight::kBold});
  svg.Text({20, 47}, under, {.size = 12, .colour = kFaint});
}

}  // namespace tidegate::figures
