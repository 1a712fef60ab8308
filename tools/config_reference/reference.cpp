// SPDX-License-Identifier: Apache-2.0
#include "config_reference/reference.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/units.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using Kind = FieldInfo::Kind;

constexpr ValueType kEnvironment{.schema = R"({"type": "string", "pattern": "\\$\\{",
        "description": "A value with `${NAME}` or `${NAME:-default}` in it."})",
                                 .shown = "",
                                 .name = "environment"};
constexpr ValueType kSize{.schema = R"({"description": "Bytes, or a number with KiB, MiB or GiB.",
        "anyOf": [{"type": "integer", "minimum": 0},
                  {"type": "string", "pattern": "^(0|[1-9][0-9]*)(KiB|MiB|GiB)?$"},
                  {"$ref": "#/$defs/environment"}]})",
                          .shown = "",
                          .name = "size"};
constexpr ValueType kDuration{
    .schema = R"({"description": "A whole number and a unit: us, ms, s, m, h or d.",
        "anyOf": [{"type": "string", "pattern": "^[0-9]+(us|ms|s|m|h|d)$"},
                  {"$ref": "#/$defs/environment"}]})",
    .shown = "",
    .name = "duration"};
constexpr ValueType kOff{
    .schema = R"({"description": "Switches it off.", "const": "off"})", .shown = "", .name = "off"};

/// Returns the default in the notation of a configuration file; empty if there is none.
std::string DefaultOf(const FieldInfo& field) {
  if (!field.default_value.empty()) return std::string(field.default_value);
  return field.initial == nullptr || !field.missing.empty() ? std::string() : field.initial(field);
}

/// Returns a range such as `1ms to 10s`; empty if the type has no range.
std::string RangeOf(const FieldInfo& field) {
  if (field.kind == Kind::kInteger) {
    if (field.max == std::numeric_limits<std::int64_t>::max()) {
      return "at least " + std::to_string(field.min);
    }
    return std::to_string(field.min) + " to " + std::to_string(field.max);
  }
  if (field.kind == Kind::kSize) return SizeText(field.min) + " to " + SizeText(field.max);
  if (field.kind == Kind::kDuration) {
    return YamlText(field, field.min) + " to " + YamlText(field, field.max);
  }
  return {};
}

json::object Parsed(std::string_view text) { return json::parse(text).as_object(); }

json::object Reference(std::string_view name) { return {{"$ref", "#/$defs/" + std::string(name)}}; }

// --- The schema --------------------------------------------------------------

class Schema {
 public:
  std::string Text() {
    for (const ValueType* type : {&kEnvironment, &kSize, &kDuration, &kOff}) Define(*type);
    json::object root = {
        {"$schema", "https://json-schema.org/draft/2020-12/schema"},
        {"title", "tidegate.yaml"},
        {"description",
         "The configuration of Tidegate; docs/configuration.md explains it. `tidegate "
         "check-config` checks more than a schema can."}};
    for (auto& member : Object(kConfigSection)) root.insert(std::move(member));
    root["$defs"] = std::move(definitions_);
    return Print(root, 0) + "\n";
  }

 private:
  void Define(const ValueType& type) {
    if (type.section != nullptr) Define(*type.section);
    if (type.type != nullptr) Define(*type.type);
    if (!type.name.empty() && !definitions_.contains(type.name)) {
      definitions_[type.name] = Parsed(type.schema);
    }
  }

  void Define(const SectionInfo& section) {
    // The empty object ends the recursion of sections that contain themselves.
    if (definitions_.emplace(section.name, json::object()).second) {
      definitions_[section.name] = Object(section);
    }
  }

  json::object Object(const SectionInfo& section) {
    json::object object = {{"type", "object"}, {"additionalProperties", false}};
    json::array required;
    json::object properties;
    for (const FieldInfo& field : section.fields) {
      if (field.kind == Kind::kAbsent) continue;
      if (!field.missing.empty()) required.emplace_back(field.key);
      properties[field.key] = Property(field);
    }
    if (!required.empty()) object["required"] = std::move(required);
    for (auto& member : Parsed("{" + std::string(section.schema) + "}")) {
      object.insert(std::move(member));
    }
    object["properties"] = std::move(properties);
    return object;
  }

  json::object Property(const FieldInfo& field) {
    json::object property = Type(field);
    std::string description(field.description);
    const bool in_words = field.kind == Kind::kSize || field.kind == Kind::kDuration;
    if (in_words) description += " Range: " + RangeOf(field) + ".";
    if (!field.default_prose.empty() && field.missing.empty()) {
      description += " Default: " + std::string(field.default_prose) + ".";
    }
    property["description"] = description;
    if (const std::string value = DefaultOf(field); !value.empty()) {
      const bool number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
      const bool literal = number || value == "true" || value == "false";
      property["default"] = literal ? json::parse(value) : json::value(value);
    }
    return property;
  }

  json::object Type(const FieldInfo& field) {
    switch (field.kind) {
      case Kind::kBool: return {{"type", "boolean"}};
      case Kind::kInteger: {
        json::object integer = {{"type", "integer"}, {"minimum", field.min}};
        if (field.max != std::numeric_limits<std::int64_t>::max()) integer["maximum"] = field.max;
        json::array any_of = {integer, Reference(kEnvironment.name)};
        if (field.or_off) any_of.push_back(Reference(kOff.name));
        return {{"anyOf", std::move(any_of)}};
      }
      case Kind::kSize: return Reference(kSize.name);
      case Kind::kDuration: return Reference(kDuration.name);
      case Kind::kWord: {
        json::array words;
        for (const Word& word : field.words) words.emplace_back(word.word);
        return {{"enum", std::move(words)}};
      }
      case Kind::kSection:
        Define(*field.section);
        if (!field.or_off) return Reference(field.section->name);
        return {{"anyOf", {Reference(field.section->name), Reference(kOff.name)}}};
      case Kind::kOther:
        Define(field.type);
        return field.type.name.empty() ? Parsed(field.type.schema) : Reference(field.type.name);
      case Kind::kAbsent: break;
    }
    return {};
  }

  /// Prints a value as JSON. Objects of sections have one line per member, and all other values one
  /// line in total.
  static std::string Print(const json::value& value, int depth) {
    const json::object* const object = value.if_object();
    const bool open = object != nullptr && (object->contains("properties") || depth == 1 ||
                                            (depth == 3 && !object->contains("$ref")));
    if (!open || object->empty()) return Line(value);
    std::string text = "{\n";
    const std::string indent(static_cast<std::size_t>(2 * depth + 2), ' ');
    for (std::size_t i = 0; const auto& member : *object) {
      const bool nested = member.key() == "properties" || member.key() == "$defs" || depth == 1;
      text += indent + json::serialize(json::string(member.key())) + ": " +
              (nested ? Print(member.value(), depth + 1) : Line(member.value())) +
              (++i < object->size() ? ",\n" : "\n");
    }
    return text + indent.substr(2) + "}";
  }

  /// Returns a value as JSON on one line, with spaces for readability.
  static std::string Line(const json::value& value) {
    std::string text;
    const auto list = [&](char open, char close, const auto& items, const auto& print) {
      text += open;
      if (open == '{' && !items.empty()) text += ' ';
      for (std::size_t i = 0; const auto& item : items) {
        text += (i++ > 0 ? ", " : "") + print(item);
      }
      if (close == '}' && !items.empty()) text += ' ';
      text += close;
    };
    if (const json::array* const array = value.if_array()) {
      list('[', ']', *array, [](const json::value& item) { return Line(item); });
    } else if (const json::object* const object = value.if_object()) {
      list('{', '}', *object, [](const json::key_value_pair& member) {
        return json::serialize(json::string(member.key())) + ": " + Line(member.value());
      });
    } else if (value.is_double()) {
      text = json::serialize(value);
      if (value.as_double() == 1.2) text = "1.2";
      if (value.as_double() == 1.3) text = "1.3";
    } else {
      text = json::serialize(value);
    }
    return text;
  }

  json::object definitions_;
};

// --- The documentation -------------------------------------------------------

using Sections = std::map<std::string_view, const SectionInfo*>;

/// Returns the section that is the value of a field or of its elements; nullptr if there is none.
const SectionInfo* InnerOf(const FieldInfo& field) {
  if (field.section != nullptr) return field.section;
  for (const ValueType* type = &field.type; type != nullptr; type = type->type) {
    if (type->section != nullptr) return type->section;
  }
  return nullptr;
}

void Collect(const SectionInfo& section, Sections& sections) {
  if (!sections.emplace(section.name, &section).second) return;
  for (const FieldInfo& field : section.fields) {
    if (const SectionInfo* const inner = InnerOf(field)) Collect(*inner, sections);
  }
}

class Tables {
 public:
  explicit Tables(std::string_view page) : page_(page) {
    Collect(kConfigSection, sections_);
    std::string_view heading;
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = std::min(page.find('\n', at), page.size());
      const std::string_view line = page.substr(at, end - at);
      if (line.starts_with('#')) heading = line;
      if (line.starts_with(kBegin)) anchors_[NameIn(line)] = Slug(heading);
      at = end + 1;
    }
  }

  std::string Page() {
    std::string text;
    std::size_t at = 0;
    while (true) {
      const std::size_t begin = page_.find(kBegin, at);
      if (begin == std::string_view::npos) break;
      const std::size_t line = page_.find('\n', begin);
      const std::size_t end = page_.find(kEnd, begin);
      const std::string_view name = NameIn(page_.substr(begin, line - begin));
      const auto section = sections_.find(name);
      if (section == sections_.end() || end == std::string_view::npos) {
        throw std::runtime_error("no section or no end for the marker of " + std::string(name));
      }
      text += page_.substr(at, line + 1 - at);
      text += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
      AddRows(*section->second, "", text);
      at = end;
    }
    text += page_.substr(at);
    for (const auto& [name, section] : sections_) {
      if (!printed_.contains(name)) {
        throw std::runtime_error("docs/configuration.md has no table of " + std::string(name) +
                                 ": add `<!-- generated: " + std::string(name) + " -->`");
      }
    }
    return text;
  }

 private:
  static constexpr std::string_view kBegin = "<!-- generated: ";
  static constexpr std::string_view kEnd = "<!-- end -->";

  static std::string_view NameIn(std::string_view marker) {
    marker.remove_prefix(kBegin.size());
    return marker.substr(0, marker.find(' '));
  }

  /// Returns the anchor that GitHub generates for a heading.
  static std::string Slug(std::string_view heading) {
    heading.remove_prefix(std::min(heading.find_first_not_of("# "), heading.size()));
    std::string slug;
    for (const char c : heading) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == ' ') slug += '-';
      if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
        slug += static_cast<char>(std::tolower(byte));
      }
    }
    return slug;
  }

  void AddRows(const SectionInfo& section, const std::string& prefix, std::string& text) {
    printed_.insert(section.name);
    for (const FieldInfo& field : section.fields) {
      if (field.kind == Kind::kAbsent) continue;
      const SectionInfo* const inner = InnerOf(field);
      const bool has_table = inner != nullptr && anchors_.contains(inner->name);
      std::string value = ValueOf(field);
      if (has_table) value.insert(0, "[").append("](#").append(anchors_[inner->name]).append(")");
      const std::string key = prefix + std::string(field.key);
      for (const std::string& cell :
           {Backticked(key), value, DefaultCell(field), std::string(field.description)}) {
        text += "| ";
        text += Cell(cell);
        text += ' ';
      }
      text += "|\n";
      if (inner != nullptr && !has_table) {
        AddRows(*inner, key + (field.section != nullptr ? "." : "[]."), text);
      }
    }
  }

  static std::string ValueOf(const FieldInfo& field) {
    const std::string or_off = field.or_off ? ", or `off`" : "";
    switch (field.kind) {
      case Kind::kBool: return "`true` or `false`";
      case Kind::kInteger:
      case Kind::kSize:
      case Kind::kDuration: return RangeOf(field) + or_off;
      case Kind::kWord: {
        std::string words;
        for (std::size_t i = 0; i < field.words.size(); ++i) {
          if (i > 0) words += i + 1 == field.words.size() ? " or " : ", ";
          words += Backticked(field.words[i].word);
        }
        return words;
      }
      case Kind::kSection: return "a map" + or_off;
      case Kind::kOther: return std::string(field.type.shown);
      case Kind::kAbsent: break;
    }
    return {};
  }

  static std::string DefaultCell(const FieldInfo& field) {
    if (!field.missing.empty()) return "required";
    if (!field.default_prose.empty()) return std::string(field.default_prose);
    const std::string value = DefaultOf(field);
    return value.empty() ? value : Backticked(value);
  }

  static std::string Cell(const std::string& text) {
    std::string cell;
    for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
    return cell;
  }

  std::string_view page_;
  Sections sections_;
  std::map<std::string_view, std::string> anchors_;  ///< Anchors of the sections with a marker, by
                                                     ///< name.
  std::set<std::string_view> printed_;
};

}  // namespace

std::string ConfigSchema() { return Schema().Text(); }

std::string WithConfigTables(std::string_view page) { return Tables(page).Page(); }

}  // namespace tidegate
