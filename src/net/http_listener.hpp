// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "net/http_connection.hpp"
#include "net/listener.hpp"

namespace tidegate::net {

/// What clients that are sent away are told by listeners that speak HTTP.
inline constexpr std::string_view kHttpShed =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Connection: close\r\n"
    "Retry-After: 1\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Type: application/problem+json\r\n"
    "\r\n"
    R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
    R"("title":"Service Unavailable","status":503,"detail":"too many connections: try again soon"})"
    "\n";
inline constexpr std::string_view kHttpNeedsTls =
    "HTTP/1.1 400 Bad Request\r\n"
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Type: application/problem+json\r\n"
    "\r\n"
    R"({"type":"about:blank","title":"Bad Request","status":400,)"
    R"("detail":"this port speaks TLS: ask with https://"})"
    "\n";

/// Accepts connections whose requests are answered by a handler, each when all of it is there.
class HttpListener final : public Listener {
 public:
  HttpListener(Reactor& reactor, Descriptor socket, HttpHandler& handler, const Options& options)
      : Listener(reactor, std::move(socket), options), handler_(handler) {}

  [[nodiscard]] HttpHandler& handler() noexcept { return handler_; }
  [[nodiscard]] const AnswerCounts* answers() const noexcept override { return &answers_; }
  [[nodiscard]] AnswerCounts& answers() noexcept { return answers_; }
  [[nodiscard]] std::string_view shed_text() const noexcept override { return kHttpShed; }
  [[nodiscard]] std::string_view needs_tls_text() const noexcept override { return kHttpNeedsTls; }

 private:
  [[nodiscard]] Connection* NewConnection(Accepted accepted) override {
    return new HttpConnection(*this, std::move(accepted));
  }

  HttpHandler& handler_;
  AnswerCounts answers_;
};

}  // namespace tidegate::net
