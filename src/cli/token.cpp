// SPDX-License-Identifier: Apache-2.0
#include "cli/token.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "core/refuse.hpp"
#include "rules/printable.hpp"

namespace tidegate::cli {
namespace {

/// As access.tokens has them.
constexpr std::size_t kMostTokenBytes = 128;

Result<std::string> Checked(std::string_view text, const std::string& where) {
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlank)));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (text.empty()) return Refuse(ErrorCode::kBadConfig, where + " holds no token");
  if (text.size() > kMostTokenBytes ||
      !std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; })) {
    return Refuse(ErrorCode::kBadConfig,
                  where +
                      " must hold one token and nothing else: at most 128 printable ASCII "
                      "characters without spaces");
  }
  return std::string(text);
}

}  // namespace

Result<std::string> ReadToken(const std::string& file) {
  if (file.empty()) {
    const char* const variable = std::getenv("TIDEGATE_TOKEN");
    if (variable == nullptr || *variable == '\0') return std::string{};
    return Checked(variable, "TIDEGATE_TOKEN");
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text(kMostTokenBytes * 4, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof())) {
    return Refuse(ErrorCode::kBadConfig,
                  "the file " + Printable(file) + " of --token-file cannot be read" +
                      (errno == 0 ? "" : ": " + std::generic_category().message(errno)));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return Checked(text, "the file " + Printable(file));
}

}  // namespace tidegate::cli
