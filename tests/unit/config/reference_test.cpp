// SPDX-License-Identifier: Apache-2.0
// docs/config.schema.json and the tables of docs/configuration.md must match the tables in
// src/config.
#include "config_reference/reference.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tidegate {
namespace {

namespace json = boost::json;

std::string ReadDoc(const std::string& name) {
  std::ifstream in(TIDEGATE_SOURCE_DIR "/docs/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Expects that the file `name` has the content `expected`. Shows only the first line that differs,
/// because both texts are long.
void ExpectCurrent(const std::string& name, const std::string& expected) {
  std::istringstream has(ReadDoc(name));
  std::istringstream should_have(expected);
  std::string a;
  std::string b;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(has, a));
    const bool more_expected = static_cast<bool>(std::getline(should_have, b));
    if (!more && !more_expected) return;
    if (more == more_expected && a == b) continue;
    ADD_FAILURE() << "docs/" << name << " is out of date: run `./dev docs`. Line " << line
                  << " is\n  " << a << "\nand should be\n  " << b;
    return;
  }
}

TEST(ConfigReferenceTest, SchemaIsCurrent) { ExpectCurrent("config.schema.json", ConfigSchema()); }

TEST(ConfigReferenceTest, DocumentationIsCurrent) {
  ExpectCurrent("configuration.md", WithConfigTables(ReadDoc("configuration.md")));
}

TEST(ConfigReferenceTest, ReportsMarkersWithoutSection) {
  EXPECT_THROW((void)WithConfigTables("<!-- generated: limts -->\n<!-- end -->\n"),
               std::runtime_error);
}

TEST(ConfigReferenceTest, ReportsSectionsWithoutTable) {
  EXPECT_THROW((void)WithConfigTables("<!-- generated: limits -->\n<!-- end -->\n"),
               std::runtime_error);
}

/// Checks that every object with properties forbids unknown keys, and that every property has a
/// description, at every depth.
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

TEST(ConfigReferenceTest, SchemaDescribesKeysAndForbidsUnknownOnes) {
  CheckObjects(json::parse(ConfigSchema()), "$");
}

/// Checks that every `$ref` names an existing definition.
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

TEST(ConfigReferenceTest, SchemaRefersToExistingDefinitions) {
  const json::value schema = json::parse(ConfigSchema());
  CheckReferences(schema, schema.at("$defs").as_object());
}

}  // namespace
}  // namespace tidegate
