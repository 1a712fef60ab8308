// SPDX-License-Identifier: Apache-2.0
#include "service/admin_openapi/admin_document.hpp"

#include <boost/json.hpp>

#include "service/openapi/document.hpp"
#include "support/files.hpp"

namespace tidegate::openapi_test {

namespace json = boost::json;

const json::value& AdminDocument() {
  static const json::value document = json::parse(test::ReadSourceFile("docs/admin-openapi.json"));
  return document;
}

void ForEachOperation(const Visit& visit) {
  for (const auto& [path, item] : AdminDocument().at("paths").as_object()) {
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
