// SPDX-License-Identifier: Apache-2.0
// docs/config.schema.json says what the reader reads: no key more, none less.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "rules/known_keys.hpp"

namespace tidegate {
namespace {

namespace json = boost::json;
using Names = std::set<std::string>;

json::value Schema() {
  std::ifstream in(TIDEGATE_SOURCE_DIR "/docs/config.schema.json");
  std::stringstream text;
  text << in.rdbuf();
  json::error_code error;
  json::value schema = json::parse(text.str(), error);
  EXPECT_FALSE(error) << error.message();
  return schema;
}

Names PropertiesOf(const json::object& section) {
  Names names;
  for (const auto& property : section.at("properties").as_object()) names.insert(property.key());
  return names;
}

TEST(Schema, HasTheKeysThatTheReaderHas) {
  const json::value schema = Schema();
  std::map<std::string, Names> in_schema;
  in_schema["config"] = PropertiesOf(schema.as_object());
  for (const auto& definition : schema.at("$defs").as_object()) {
    const json::object& section = definition.value().as_object();
    if (section.contains("properties")) in_schema[definition.key()] = PropertiesOf(section);
  }
  std::map<std::string, Names> in_reader;
  for (const SectionKeys& section : KnownKeys()) {
    in_reader[std::string{section.section}] = {section.keys.begin(), section.keys.end()};
  }
  EXPECT_EQ(in_schema, in_reader);
}

/// Every object with properties is closed, and every property is described, however deep.
void CheckObjects(const json::value& value, const std::string& where) {
  if (const json::array* const items = value.if_array()) {
    for (const json::value& item : *items) CheckObjects(item, where + "[]");
  }
  const json::object* const object = value.if_object();
  if (object == nullptr) return;
  if (const json::value* const properties = object->if_contains("properties")) {
    const json::value* const more = object->if_contains("additionalProperties");
    EXPECT_TRUE(more != nullptr && more->is_bool() && !more->as_bool()) << where;
    for (const auto& property : properties->as_object()) {
      EXPECT_TRUE(property.value().as_object().contains("description"))
          << where << "." << std::string{property.key()};
    }
  }
  for (const auto& member : *object) {
    CheckObjects(member.value(), where + "." + std::string{member.key()});
  }
}

TEST(Schema, IsClosedAndDescribed) { CheckObjects(Schema(), "$"); }

/// Whatever it refers to is there.
void CheckReferences(const json::value& value, const json::object& definitions) {
  if (const json::array* const items = value.if_array()) {
    for (const json::value& item : *items) CheckReferences(item, definitions);
  }
  const json::object* const object = value.if_object();
  if (object == nullptr) return;
  if (const json::value* const reference = object->if_contains("$ref")) {
    const std::string name = json::value_to<std::string>(*reference);
    ASSERT_EQ(name.substr(0, 8), "#/$defs/");
    EXPECT_TRUE(definitions.contains(name.substr(8))) << name;
  }
  for (const auto& member : *object) CheckReferences(member.value(), definitions);
}

TEST(Schema, RefersToWhatIsThere) {
  const json::value schema = Schema();
  CheckReferences(schema, schema.at("$defs").as_object());
}

}  // namespace
}  // namespace tidegate
