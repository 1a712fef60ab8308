// SPDX-License-Identifier: Apache-2.0
#include "rules/request_view.hpp"

#include <algorithm>

#include "rules/ascii.hpp"
#include "rules/printable.hpp"

namespace tidegate {

bool IsUpperCaseMethod(std::string_view method) noexcept {
  return std::ranges::none_of(method, [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string LowerCaseMethod(std::string_view method) {
  return "method `" + Printable(method.substr(0, 32)) +
         "` is not in upper case: methods are case-sensitive, but some servers ignore the case";
}

bool IsRequestId(std::string_view text) noexcept {
  constexpr std::size_t kMost = 128;
  static constexpr std::string_view kMarks = "-_.:/+=";
  return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (Lower(c) >= 'a' && Lower(c) <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (a == b) return true;  // Most often the case is the usual one.
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

std::string_view FindHeader(std::span<const HeaderField> headers, std::string_view name) noexcept {
  for (const HeaderField& field : headers) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    // A null pointer means "absent", so an empty value must have another.
    return field.value.data() != nullptr ? field.value : std::string_view("");
  }
  return {};
}

}  // namespace tidegate
