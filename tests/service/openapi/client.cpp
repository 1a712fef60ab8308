// SPDX-License-Identifier: Apache-2.0
#include "service/openapi/client.hpp"

#include "support/http_client.hpp"

namespace tidegate::openapi_test {

Reply Exchange(const net::Endpoint& server, std::string_view request) {
  test::HttpClient client(server);
  client.Send(request);
  const test::HttpResponse response = client.ReadPartial();
  Reply reply{.status = response.status, .fields = {}, .body = response.body};
  for (const auto& [name, value] : response.fields) reply.fields.emplace(name, value);
  return reply;
}

std::string RequestText(std::string_view method, std::string_view path, std::string_view body,
                        std::string_view content_type, std::string_view field_lines,
                        std::string_view host) {
  std::string text;
  text.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: ").append(host);
  text.append("\r\nConnection: close\r\n").append(field_lines);
  if (!content_type.empty()) text.append("Content-Type: ").append(content_type).append("\r\n");
  text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return text.append(body);
}

}  // namespace tidegate::openapi_test
