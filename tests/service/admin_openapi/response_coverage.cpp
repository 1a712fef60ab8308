// SPDX-License-Identifier: Apache-2.0
#include "service/admin_openapi/response_coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <iterator>

#include "service/openapi/document.hpp"
#include "service/openapi/json_schema.hpp"

namespace tidegate::openapi_test {
namespace {

namespace json = boost::json;

/// Returns the short name of a reference: `#/components/schemas/Rule/properties/mode` becomes
/// `Rule.mode`.
std::string NameOf(std::string_view reference) {
  std::string name(reference.substr(std::string_view("#/components/schemas/").size()));
  constexpr std::string_view kProperties = "/properties/";
  for (std::size_t at = 0; (at = name.find(kProperties)) != std::string::npos;) {
    name.replace(at, kProperties.size(), ".");
  }
  return name;
}

std::string LineOf(std::string_view path, std::string_view method, std::string_view status) {
  std::string line;
  for (const char c : method) line += static_cast<char>(std::toupper(c));
  return line.append(" ").append(path).append(" ").append(status);
}

}  // namespace

ResponseCoverage::ResponseCoverage(const json::value& document) : document_(document) {
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      for (const auto& [status, answer] : operation.at("responses").as_object()) {
        const std::string line = LineOf(path, method, status);
        documented_.insert(line);
        const json::object& documented = Resolved(document, answer).as_object();
        if (const json::value* const headers = documented.if_contains("headers")) {
          for (const auto& header : headers->as_object()) {
            documented_.insert(line + " " + std::string(header.key()));
          }
        }
        const json::value* const contents = documented.if_contains("content");
        if (contents == nullptr) continue;
        for (const auto& content : contents->as_object()) {
          Note(content.value().at("schema"), line, nullptr, documented_);
        }
      }
    }
  }
}

void ResponseCoverage::Check(std::string_view path, std::string_view method, const Reply& reply) {
  path = path.substr(0, path.find('?'));
  const std::string status = std::to_string(reply.status);
  const std::string line = LineOf(path, method, status);
  SCOPED_TRACE(line);
  const json::object& operation = Operation(path, method, document_);
  CheckDocumented(reply, operation, document_);
  const json::value* const answer = operation.at("responses").as_object().if_contains(status);
  if (answer == nullptr) return;
  seen_.insert(line);
  for (const auto& field : reply.fields) seen_.insert(line + " " + field.first);
  const auto type = reply.fields.find("Content-Type");
  if (type == reply.fields.end()) return;
  const json::value& contents = Resolved(document_, *answer).at("content");
  if (const json::value* const content = contents.as_object().if_contains(type->second)) {
    const json::value body = BodyOf(reply);
    Note(content->at("schema"), line, &body, seen_);
  }
}

std::set<std::string> ResponseCoverage::Unseen() const {
  Lines unseen;
  std::ranges::set_difference(documented_, seen_, std::inserter(unseen, unseen.end()));
  return unseen;
}

void ResponseCoverage::Note(const json::value& schema, const std::string& at,
                            const json::value* value, Lines& to) const {
  const json::object* const object = schema.if_object();
  if (object == nullptr) return;
  if (const json::value* const reference = object->if_contains("$ref")) {
    const std::string_view name = reference->as_string();
    if (value == nullptr && !noted_.emplace(name).second) return;
    return Note(Follow(document_, name), NameOf(name), value, to);
  }
  if (const json::value* const known = object->if_contains("enum")) {
    for (const json::value& each : known->as_array()) {
      if (value == nullptr || *value == each) to.insert(at + "=" + json::serialize(each));
    }
  }
  if (const json::value* const members = object->if_contains("properties")) {
    NoteMembers(members->as_object(), at, value, to);
  }
  if (const json::value* const items = object->if_contains("items")) {
    if (value == nullptr) Note(*items, at + "[]", nullptr, to);
    const json::array* const array = value == nullptr ? nullptr : value->if_array();
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      Note(*items, at + "[]", &(*array)[i], to);
    }
  }
  if (const json::value* const all = object->if_contains("allOf")) {
    for (const json::value& each : all->as_array()) Note(each, at, value, to);
  }
  if (const json::value* const forms = object->if_contains("oneOf")) {
    NoteForms(forms->as_array(), at, value, to);
  }
}

void ResponseCoverage::NoteMembers(const json::object& members, const std::string& at,
                                   const json::value* value, Lines& to) const {
  for (const auto& [name, schema] : members) {
    if (schema.is_bool() && !schema.get_bool()) continue;  // The schema forbids this member.
    const json::object* const object = value == nullptr ? nullptr : value->if_object();
    const json::value* const member = object == nullptr ? nullptr : object->if_contains(name);
    if (value != nullptr && member == nullptr) continue;
    const std::string line = at + "." + std::string(name);
    to.insert(line);
    Note(schema, line, member, to);
  }
}

void ResponseCoverage::NoteForms(const json::array& forms, const std::string& at,
                                 const json::value* value, Lines& to) const {
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (value != nullptr && !Mistakes(*value, forms[i], document_).empty()) continue;
    const json::value* const reference = forms[i].as_object().if_contains("$ref");
    const std::string name =
        reference == nullptr ? std::to_string(i) : NameOf(reference->as_string());
    std::string line = at;
    line.append("|").append(name);
    to.insert(line);
    Note(forms[i], line, value, to);
  }
}

}  // namespace tidegate::openapi_test
