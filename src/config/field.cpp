// SPDX-License-Identifier: Apache-2.0
#include "config/field.hpp"

#include <vector>

#include "base/message_text.hpp"
#include "base/units.hpp"

namespace tidegate {
namespace {

void ReportUnknown(const ConfigValue& map, const ConfigValue& key, const SectionInfo& section,
                   std::span<const std::string_view> names) {
  const std::string& text = key.node().text;
  const std::string shown{ShownKey(text)};
  const auto known = std::ranges::find(section.fields, text, &FieldInfo::key);
  std::string message = shown == "*" ? "unknown key, not shown since it may hold a secret"
                                     : "unknown key " + Backticked(shown);
  if (known != section.fields.end()) {
    message = "this version of tidegate " + std::string{known->description} + ": remove " +
              Backticked(shown);
  } else if (text == "<<") {
    message += ": merge keys are not supported; repeat the keys, or use an alias as a whole value";
  } else if (const std::string hint = DidYouMean(text, names); !hint.empty()) {
    message = "unknown key " + Backticked(text.substr(0, 64)) + hint;
  } else {
    message += ": the keys here are " + OneOf(names);
  }
  map.context().Add(Problem::Severity::kError, key.at(), map.where(), message);
}

}  // namespace

void ReadFields(const ConfigValue& map, const SectionInfo& section, void* out) {
  const std::span<const FieldInfo> fields = section.fields;
  if (!map.is_map()) {
    return map.WrongType("a map with keys such as " + Backticked(fields.front().key));
  }
  std::vector<std::string_view> names;
  for (const FieldInfo& field : fields) {
    if (field.kind != FieldInfo::Kind::kAbsent) names.push_back(field.key);
  }
  std::vector<const YamlNode*> first_keys(names.size(), nullptr);
  const std::vector<const YamlNode*>& children = map.node().children;
  for (std::size_t i = 0; i + 1 < children.size() && !map.context().full(); i += 2) {
    const ConfigValue key(map.context(), *children[i], map.where());
    if (!key.is_scalar()) {
      key.Error("a key here should be a word");
      continue;
    }
    const std::string& text = key.node().text;
    const auto place = static_cast<std::size_t>(std::ranges::find(names, text) - names.begin());
    if (place == names.size()) {
      ReportUnknown(map, key, section, names);
    } else if (first_keys[place] != nullptr) {
      const Position& first = first_keys[place]->at;
      key.Error("the key " + Backticked(text) +
                (first.file == key.at().file ? " is repeated" : " is in two files") +
                ", first on " + LineOf(first, key.at()));
    } else {
      first_keys[place] = children[i];
      fields[place].read(map[text], fields[place], out);
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (first_keys[i] == nullptr && !fields[i].missing.empty()) map.Error(fields[i].missing);
  }
}

std::optional<std::int64_t> ReadNumber(const ConfigValue& value, const FieldInfo& field) {
  const auto number = [](const auto& read) {
    return read ? std::optional(static_cast<std::int64_t>(*read)) : std::nullopt;
  };
  if (field.or_off && value.IsOff()) return 0;
  switch (field.kind) {
    case FieldInfo::Kind::kBool: return number(value.Bool());
    case FieldInfo::Kind::kInteger: return value.Integer(field.min, field.max);
    case FieldInfo::Kind::kSize: return number(value.Size(field.min, field.max));
    case FieldInfo::Kind::kDuration: {
      const auto duration = value.Duration(Micros{field.min}, Micros{field.max});
      return duration ? std::optional(duration->count()) : std::nullopt;
    }
    case FieldInfo::Kind::kWord: return number(value.OneOf(field.words));
    default: return std::nullopt;
  }
}

std::string YamlText(const FieldInfo& field, std::int64_t number) {
  switch (field.kind) {
    case FieldInfo::Kind::kSize: return SizeText(number);
    case FieldInfo::Kind::kDuration:
      for (const DurationUnit& unit : kDurationUnits) {
        // `60s` rather than `1m`: most timeouts are written in seconds.
        if (unit.name == "m" && Micros{number} < 2 * unit.length) continue;
        if (number == 0 || Micros{number} % unit.length != Micros{0}) continue;
        return std::to_string(Micros{number} / unit.length) + std::string{unit.name};
      }
      return "0s";
    case FieldInfo::Kind::kWord: {
      const auto word = std::ranges::find(field.words, number, &Word::value);
      return word == field.words.end() ? std::string{} : std::string{word->word};
    }
    case FieldInfo::Kind::kInteger: return std::to_string(number);
    default: return number != 0 ? "true" : "false";
  }
}

}  // namespace tidegate
