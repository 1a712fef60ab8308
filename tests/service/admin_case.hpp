// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "service/fixture.hpp"

namespace tidegate::service {

/// Sends a POST request to the admin port of a service and returns the response.
inline HttpResponse AskAdmin(const net::Endpoint& at, std::string_view path, std::string_view body,
                             std::string_view more_fields = {}) {
  HttpClient client(at);
  client.Send("POST " + std::string(path) +
              " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" +
              std::string(more_fields) + "Content-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + std::string(body));
  return client.Read();
}
inline HttpResponse AskAdmin(Service& service, std::string_view path, std::string_view body,
                             std::string_view more_fields = {}) {
  return AskAdmin(service.admin(), path, body, more_fields);
}
inline HttpResponse ReadAdmin(Service& service, std::string_view path) {
  HttpClient client(service.admin());
  client.Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  return client.Read();
}

}  // namespace tidegate::service
