// SPDX-License-Identifier: Apache-2.0
#include "service/admin_openapi/admin_document.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "admin/admin_door.hpp"
#include "service/openapi/document.hpp"

namespace tidegate::openapi_test {

namespace json = boost::json;

const json::value& AdminDocument() {
  static const json::value document = json::parse(ReadFile("docs/admin-openapi.json"));
  return document;
}

void ForEachOperation(const Visit& visit) {
  const std::vector<std::string_view> answered = AdminDoor::Paths();
  for (const auto& [path, item] : AdminDocument().at("paths").as_object()) {
    if (std::ranges::find(answered, std::string_view(path)) == answered.end()) continue;
    for (const auto& [method, operation] : item.as_object()) {
      visit(std::string(path), std::string(method), operation.as_object());
    }
  }
}

Reply AskAdmin(const net::Endpoint& admin, std::string_view method, std::string_view path,
               std::string_view body, std::string_view field_lines) {
  const std::string_view type = method == "POST" ? "application/json" : "";
  return Exchange(admin, RequestText(method, path, body, type, field_lines, "127.0.0.1"));
}

}  // namespace tidegate::openapi_test
