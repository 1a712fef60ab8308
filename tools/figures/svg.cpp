// SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace tidegate::figures {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + std::string(value) + "\"";
}
std::string Attribute(std::string_view name, double value) {
  return Attribute(name, Number(value));
}

std::string Style(const Stroke& stroke) {
  std::string out = Attribute("fill", "none") + Attribute("stroke", stroke.colour) +
                    Attribute("stroke-width", stroke.width);
  if (!stroke.dash.empty()) out += Attribute("stroke-dasharray", stroke.dash);
  return out;
}

std::string Style(const Font& font) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  std::string out = Attribute("font-size", font.size) + Attribute("fill", font.colour);
  if (font.anchor != Anchor::kStart) {
    out += Attribute("text-anchor", kAnchors[static_cast<std::size_t>(font.anchor)]);
  }
  if (font.weight == Weight::kBold) out += Attribute("font-weight", "bold");
  return out;
}

}  // namespace

std::string Number(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  std::string out = text.data();
  if (out.find('.') != std::string::npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  return out == "-0" ? "0" : out;
}

Svg::Svg(double width, double height, std::string_view title) : width_(width) {
  body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + Attribute("width", width) +
          Attribute("height", height) +
          Attribute("viewBox", "0 0 " + Number(width) + " " + Number(height)) +
          Attribute("font-family", "'DejaVu Sans', Verdana, Arial, sans-serif") +
          Attribute("role", "img") + ">\n<title>" + Escaped(title) + "</title>\n";
  body_ += "<rect width=\"100%\" height=\"100%\" rx=\"8\"" + Attribute("fill", kCard) + "/>\n";
}

void Svg::Line(Point from, Point to, const Stroke& stroke) {
  body_ += "<line" + Attribute("x1", from.x) + Attribute("y1", from.y) + Attribute("x2", to.x) +
           Attribute("y2", to.y) + Style(stroke) + "/>\n";
}

void Svg::Arrow(Point from, Point to, const Stroke& stroke) {
  Line(from, to, stroke);
  const double angle = std::atan2(to.y - from.y, to.x - from.x);
  constexpr double kLength = 7;
  constexpr double kSpread = 0.42;
  const Stroke solid{stroke.colour, stroke.width};
  for (const double side : {-kSpread, kSpread}) {
    Line({to.x - kLength * std::cos(angle + side), to.y - kLength * std::sin(angle + side)}, to,
         solid);
  }
}

void Svg::Path(std::span<const Point> points, const Stroke& stroke) {
  body_ += "<polyline points=\"";
  for (const Point& p : points) body_ += Number(p.x) + "," + Number(p.y) + " ";
  body_ += "\"" + Style(stroke) + Attribute("stroke-linejoin", "round") + "/>\n";
}

void Svg::Box(Point corner, double width, double height, std::string_view fill, double opacity) {
  body_ += "<rect" + Attribute("x", corner.x) + Attribute("y", corner.y) +
           Attribute("width", width) + Attribute("height", height) + Attribute("fill", fill);
  if (opacity < 1) body_ += Attribute("opacity", Number(opacity, 2));
  body_ += "/>\n";
}

void Svg::Frame(Point corner, double width, double height, const Stroke& stroke) {
  body_ += "<rect" + Attribute("x", corner.x) + Attribute("y", corner.y) +
           Attribute("width", width) + Attribute("height", height) + Style(stroke) + "/>\n";
}

void Svg::Disc(Point centre, double radius, std::string_view fill) {
  body_ += "<circle" + Attribute("cx", centre.x) + Attribute("cy", centre.y) +
           Attribute("r", radius) + Attribute("fill", fill) + "/>\n";
}

void Svg::Cross(Point centre, double radius, const Stroke& stroke) {
  Line({centre.x - radius, centre.y - radius}, {centre.x + radius, centre.y + radius}, stroke);
  Line({centre.x - radius, centre.y + radius}, {centre.x + radius, centre.y - radius}, stroke);
}

void Svg::Text(Point at, std::string_view text, const Font& font) {
  body_ += "<text" + Attribute("x", at.x) + Attribute("y", at.y) + Style(font) + ">" +
           Escaped(text) + "</text>\n";
}

void Svg::TextUp(Point at, std::string_view text, const Font& font) {
  const std::string turn = "rotate(-90 " + Number(at.x) + " " + Number(at.y) + ")";
  body_ += "<text" + Attribute("x", at.x) + Attribute("y", at.y) + Attribute("transform", turn) +
           Style(font) + ">" + Escaped(text) + "</text>\n";
}

bool Svg::Save(const std::filesystem::path& path) const {
  std::ofstream file(path, std::ios::binary);
  file << body_ << "</svg>\n";
  return file.flush().good();
}

}  // namespace tidegate::figures
