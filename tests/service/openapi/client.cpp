// SPDX-License-Identifier: Apache-2.0
#include "service/openapi/client.hpp"

#include <sys/socket.h>

#include <charconv>

#include "net/descriptor.hpp"

namespace tidegate::openapi_test {
namespace {

Reply Parse(std::string_view text) {
  Reply reply;
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string_view::npos || !text.starts_with("HTTP/1.1 ")) return reply;
  std::from_chars(text.data() + 9, text.data() + 12, reply.status);
  reply.body = text.substr(end + 4);
  std::string_view lines = text.substr(0, end + 2);
  lines.remove_prefix(lines.find("\r\n") + 2);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    const std::size_t colon = line.find(": ");
    reply.fields.emplace(line.substr(0, colon), line.substr(colon + 2));
    lines.remove_prefix(line.size() + 2);
  }
  return reply;
}

}  // namespace

Reply Exchange(const net::Endpoint& server, std::string_view request) {
  const net::Descriptor socket(::socket(server.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Long enough for any machine: a test that waits for it has failed.
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(socket.get(), server.address(), server.size()) != 0) return {};
  while (!request.empty()) {
    const ssize_t sent = send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // Refused half-way: the answer may be there already.
    request.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = recv(socket.get(), buffer, sizeof buffer, 0)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return Parse(text);
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
