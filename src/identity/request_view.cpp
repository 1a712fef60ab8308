// SPDX-License-Identifier: Apache-2.0
#include "identity/request_view.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/message_text.hpp"

namespace tidegate {

bool IsUpperCaseMethod(std::string_view method) noexcept {
  return std::ranges::none_of(method, IsLower);
}

std::string LowerCaseMethod(std::string_view method) {
  return "method `" + Printable(method.substr(0, 32)) +
         "` is not in upper case: methods are case-sensitive, but some servers ignore the case";
}

bool IsRequestId(std::string_view text) noexcept {
  constexpr std::size_t kMost = 128;
  static constexpr std::string_view kMarks = "-_.:/+=";
  return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || kMarks.find(c) != std::string_view::npos;
  });
}

std::string_view FindHeader(std::span<const HeaderField> headers, std::string_view name) noexcept {
  for (const HeaderField& field : headers) {
    if (!EqualsIgnoreCase(field.name, name)) continue;
    // A null pointer means that the field is absent, so an empty value needs another pointer.
    return field.value.data() != nullptr ? field.value : std::string_view("");
  }
  return {};
}

}  // namespace tidegate
