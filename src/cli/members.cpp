// SPDX-License-Identifier: Apache-2.0
#include "cli/members.hpp"

#include <algorithm>
#include <limits>

namespace tidegate::cli {

namespace json = boost::json;

double NumberOf(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return 0;
}

std::int64_t WholeOf(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return std::numeric_limits<std::int64_t>::max();
  if (value.is_double())
    return static_cast<std::int64_t>(std::clamp(value.get_double(), -9e18, 9e18));
  return 0;
}

std::string TextOf(const json::value& value) {
  if (value.is_string()) return std::string(std::string_view(value.get_string()));
  if (value.is_null()) return {};
  if (value.is_array()) {
    std::string text;
    for (const json::value& element : value.get_array()) {
      if (!text.empty()) text += ", ";
      text += TextOf(element);
    }
    return text;
  }
  if (value.is_object()) {
    std::string text;
    for (const auto& member : value.get_object()) {
      if (!text.empty()) text += ", ";
      text += std::string(std::string_view(member.key())) + ": " + TextOf(member.value());
    }
    return text;
  }
  return json::serialize(value);
}

const json::object& Members::All() const {
  static const json::object kNone;
  return object_ == nullptr ? kNone : *object_;
}

const json::value* Members::Find(std::string_view name) const {
  const json::value* const value = All().if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::int64_t Members::Whole(std::string_view name) const {
  const json::value* const value = Find(name);
  return value == nullptr ? 0 : WholeOf(*value);
}

double Members::Number(std::string_view name) const {
  const json::value* const value = Find(name);
  return value == nullptr ? 0 : NumberOf(*value);
}

std::string Members::Text(std::string_view name) const {
  const json::value* const value = Find(name);
  return value == nullptr ? std::string{} : TextOf(*value);
}

bool Members::Yes(std::string_view name) const {
  const json::value* const value = Find(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::chrono::milliseconds Members::Ms(std::string_view name) const {
  // Within what microseconds can hold: whoever prints it converts.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1000;
  return std::chrono::milliseconds{std::clamp<std::int64_t>(Whole(name), 0, kMost)};
}

Members Members::Of(std::string_view name) const {
  const json::value* const value = Find(name);
  return value == nullptr ? Members{} : Members{*value};
}

const json::array& Members::Array(std::string_view name) const {
  static const json::array kNone;
  const json::value* const value = Find(name);
  return value == nullptr || !value->is_array() ? kNone : value->get_array();
}

}  // namespace tidegate::cli
