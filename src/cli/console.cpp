// SPDX-License-Identifier: Apache-2.0
#include "cli/console.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace tidegate::cli {
namespace {

std::string_view CodeOf(Ink ink) noexcept {
  switch (ink) {
    case Ink::kGood:
      return "\x1b[32m";
    case Ink::kBad:
      return "\x1b[31m";
    case Ink::kWarning:
      return "\x1b[33m";
    case Ink::kQuiet:
      return "\x1b[2m";
    case Ink::kStrong:
      return "\x1b[1m";
    case Ink::kPlain:
      break;
  }
  return {};
}

}  // namespace

std::string Inked(std::string_view text, Ink ink, Colours colours) {
  if (colours == Colours::kOff || ink == Ink::kPlain || text.empty()) return std::string(text);
  return std::string(CodeOf(ink)).append(text).append("\x1b[0m");
}

Colours ColoursOf(int fd) {
  if (isatty(fd) == 0) return Colours::kOff;
  const char* const none = std::getenv("NO_COLOR");
  if (none != nullptr && *none != '\0') return Colours::kOff;
  const char* const term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") return Colours::kOff;
  return Colours::kOn;
}

Console StandardConsole() { return {std::cout, std::cerr, ColoursOf(STDOUT_FILENO)}; }

}  // namespace tidegate::cli
