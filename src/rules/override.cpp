// SPDX-License-Identifier: Apache-2.0
#include "rules/override.hpp"

#include <array>
#include <boost/json.hpp>

namespace tidegate {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, kOverrideKinds> kNames = {"ban", "allow", "quota"};

/// A member's text; nothing where it is missing or something else.
std::optional<std::string> TextOf(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

std::optional<Override::Kind> KindOf(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Override::Kind>(i);
  }
  return std::nullopt;
}

bool ReadQuota(const json::object& object, Override& to) {
  const auto limit = TextOf(object, "limit");
  const auto algorithm = ParseAlgorithm(TextOf(object, "algorithm").value_or(""));
  const json::value* const burst = object.if_contains("burst");
  if (!limit || !algorithm || (burst != nullptr && !burst->is_int64())) return false;
  const auto parsed = LimitText::Parse(*limit);
  if (!parsed) return false;
  to.limit = *parsed;
  to.algorithm = *algorithm;
  to.burst = burst == nullptr ? 0 : burst->get_int64();
  return to.MakeQuota().has_value();
}

}  // namespace

std::string_view Name(Override::Kind kind) noexcept {
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Override::Field(std::string_view rule, std::string_view identity) {
  std::string field;
  field.reserve(rule.size() + 1 + identity.size());
  return field.append(rule).append(" ").append(identity);
}

std::optional<OverrideKey> Override::ParseField(std::string_view field) {
  const std::size_t space = field.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return OverrideKey{std::string(field.substr(0, space)), std::string(field.substr(space + 1))};
}

std::string Override::Text() const {
  json::object object{{"kind", json::string_view(Name(kind).data(), Name(kind).size())},
                      {"rule", rule},
                      {"key", identity}};
  if (kind == Kind::kQuota) {
    const std::string_view name = tidegate::Name(algorithm);
    object["algorithm"] = json::string_view(name.data(), name.size());
    object["limit"] = limit.Text();
    if (burst != 0) object["burst"] = burst;
  }
  object["by"] = by;
  object["reason"] = reason;
  return json::serialize(object);
}

std::optional<Override> Override::Parse(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !root.is_object()) return std::nullopt;
  const json::object& object = root.get_object();
  const auto kind = KindOf(TextOf(object, "kind").value_or(""));
  auto rule = TextOf(object, "rule");
  auto identity = TextOf(object, "key");
  if (!kind || !rule || !identity) return std::nullopt;
  Override made{.kind = *kind,
                .rule = *std::move(rule),
                .identity = *std::move(identity),
                .limit = {},
                .reason = TextOf(object, "reason").value_or(""),
                .by = TextOf(object, "by").value_or("")};
  if (*kind == Kind::kQuota && !ReadQuota(object, made)) return std::nullopt;
  return made;
}

Result<Quota> Override::MakeQuota() const {
  return Quota::Make(
      {.algorithm = algorithm, .limit = limit.count, .period = limit.period, .burst = burst});
}

}  // namespace tidegate
