// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// The subset of SVG that the figures of docs/algorithms need.
namespace tidegate::figures {

/// Every figure has its own light background card, so that one set of colours suits light and dark
/// pages. All colours have a contrast above 4.5 on the card.
inline constexpr std::string_view kCard = "#fbfaf7";
inline constexpr std::string_view kInk = "#22272e";
inline constexpr std::string_view kFaint = "#6a6f76";
inline constexpr std::string_view kGrid = "#dcdad3";
inline constexpr std::string_view kBlue = "#0b5fa5";
inline constexpr std::string_view kRed = "#c0390b";
inline constexpr std::string_view kGreen = "#2a7340";
inline constexpr std::string_view kPurple = "#7a3e9d";

struct Point {
  double x;
  double y;
};

struct Stroke {
  std::string_view colour = kInk;
  double width = 1.5;
  std::string_view dash = "";
};

enum class Anchor { kStart, kMiddle, kEnd };
enum class Weight { kPlain, kBold };

struct Font {
  double size = 12;
  std::string_view colour = kInk;
  Anchor anchor = Anchor::kStart;
  Weight weight = Weight::kPlain;
};

/// A drawing in pixels, with y pointing down. Numbers are written with one decimal.
class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  void Line(Point from, Point to, const Stroke& stroke);
  /// Draws a line with an arrow head at `to`.
  void Arrow(Point from, Point to, const Stroke& stroke);
  void Path(std::span<const Point> points, const Stroke& stroke);
  void Box(Point corner, double width, double height, std::string_view fill, double opacity = 1);
  void Frame(Point corner, double width, double height, const Stroke& stroke);
  void Disc(Point centre, double radius, std::string_view fill);
  void Cross(Point centre, double radius, const Stroke& stroke);
  void Text(Point at, std::string_view text, const Font& font = {});
  /// Writes text turned by a quarter, which reads upwards.
  void TextUp(Point at, std::string_view text, const Font& font = {});

  [[nodiscard]] double width() const noexcept { return width_; }
  /// Writes the drawing to a file. Returns false if that fails.
  [[nodiscard]] bool Save(const std::filesystem::path& path) const;

 private:
  double width_;
  std::string body_;
};

/// Returns `value` with at most `decimals` decimals, without trailing zeros.
[[nodiscard]] std::string Number(double value, int decimals = 1);

}  // namespace tidegate::figures
