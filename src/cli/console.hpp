// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace tidegate::cli {

enum class Colours : std::uint8_t { kOff, kOn };
enum class Ink : std::uint8_t { kPlain, kGood, kBad, kWarning, kQuiet, kStrong };

/// `text` between the codes of its ink; as it is where there are no colours.
[[nodiscard]] std::string Inked(std::string_view text, Ink ink, Colours colours);

/// Whether `fd` wants colours: a terminal that is not dumb, and no NO_COLOR in the environment.
[[nodiscard]] Colours ColoursOf(int fd);

/// Where a command writes.
struct Console {
  std::ostream& out;
  std::ostream& err;
  Colours colours = Colours::kOff;  ///< Of `out`.
};

/// The process's own.
[[nodiscard]] Console StandardConsole();

}  // namespace tidegate::cli
