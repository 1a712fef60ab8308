// SPDX-License-Identifier: Apache-2.0
#include "rules/substitution.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace tidegate {
namespace {

/// A value that the environment blew up beyond this is a mistake.
constexpr std::size_t kMaxExpanded = 1u << 20;

bool IsVariableName(std::string_view name) noexcept {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// `inside` is what stands between `${` and `}`.
std::expected<std::string, std::string> Lookup(std::string_view inside, Environment environment) {
  const auto colon = inside.find(":-");
  const std::string name{inside.substr(0, colon)};
  if (!IsVariableName(name)) {
    return std::unexpected(
        "what stands in `${...}` is not the name of an environment variable; for a literal `${` "
        "write `$${`");
  }
  std::optional<std::string> value = environment(name);
  if (colon != std::string_view::npos && (!value || value->empty())) {
    return std::string{inside.substr(colon + 2)};
  }
  if (!value) {
    return std::unexpected("the environment variable `" + name +
                           "` is not set; set it, or give a default as in `${" + name +
                           ":-value}`");
  }
  return *std::move(value);
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string{value};
}

std::expected<std::string, std::string> Substitute(std::string_view text, Environment environment) {
  std::string result;
  while (true) {
    const auto open = text.find("${");
    if (open == std::string_view::npos) break;
    if (open > 0 && text[open - 1] == '$') {  // `$${`
      result += text.substr(0, open);
      result += '{';
      text.remove_prefix(open + 2);
      continue;
    }
    const auto close = text.find('}', open);
    if (close == std::string_view::npos) {
      return std::unexpected("`${` has no `}`; for a literal `${` write `$${`");
    }
    const auto value = Lookup(text.substr(open + 2, close - open - 2), environment);
    if (!value) return std::unexpected(value.error());
    result += text.substr(0, open);
    result += *value;
    if (result.size() > kMaxExpanded) {
      return std::unexpected("environment variables make this value longer than 1 MiB");
    }
    text.remove_prefix(close + 1);
  }
  result += text;
  return result;
}

SecretFile ReadSecretFile(const std::string& path, const std::string& folder,
                          std::size_t max_bytes) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return {{}, std::unexpected("`file:` needs a path, as in `file:secrets/key`")};
  }
  SecretFile read{{.path = (std::filesystem::path{folder} / path).string()}, std::string{}};
  const std::string& file = read.seen.path;
  const auto refuse = [&](const std::string& why) {
    read.content = std::unexpected(why);
    return std::move(read);
  };
  std::error_code error;
  // A pipe or a terminal would block; a folder reads as empty.
  if (!std::filesystem::is_regular_file(file, error)) {
    return refuse("there is no file `" + file + "`");
  }
  std::ifstream in(file, std::ios::binary);
  std::string content(max_bytes + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad() || (!in.eof() && in.fail())) {
    return refuse("the file `" + file + "` cannot be read");
  }
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() > max_bytes) {
    return refuse("the file `" + file + "` is larger than " + std::to_string(max_bytes >> 10) +
                  " KiB");
  }
  read.seen.content = DigestOf(content);
  if (content.ends_with('\n')) content.resize(content.size() - (content.ends_with("\r\n") ? 2 : 1));
  read.content = std::move(content);
  return read;
}

}  // namespace tidegate
