// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/credentials.hpp"
#include "net/descriptor.hpp"
#include "tidegate/clock.hpp"

namespace tidegate::cli {

inline constexpr std::uint16_t kAdminPort = 9180;
inline constexpr std::uint16_t kApiPort = 8081;
inline constexpr std::uint16_t kRespPort = 6380;

/// The address of a server as people write it. The name is not looked up yet.
struct ServerAddress {
  std::string host = {};  ///< A name or an address, IPv6 without brackets.
  std::uint16_t port = 0;
  bool tls = false;

  /// Reads `127.0.0.1:9180`, `localhost:9180`, `[::1]:9180`, `::1`, `host`, `:9180` (this machine),
  /// and any of them with `http://` or `https://` before and slashes after it. The Error says what
  /// is expected.
  [[nodiscard]] static Result<ServerAddress> Parse(std::string_view text,
                                                   std::uint16_t default_port);
  /// Returns HOST:PORT, as in a URL and a Host field.
  [[nodiscard]] std::string Text() const;
  /// Returns the address for messages: with `https://` if it has TLS.
  [[nodiscard]] std::string Display() const { return (tls ? "https://" : "") + Text(); }
  /// Returns the name that the server's certificate must have: the host without the zone of an
  /// address or the final dot of a name, which mean something only on this machine.
  [[nodiscard]] std::string CertifiedName() const;

  friend bool operator==(const ServerAddress&, const ServerAddress&) = default;
};

struct HttpRequest {
  std::string target = {};               ///< The encoded path: `/v1/status`
  std::optional<std::string> body = {};  ///< JSON, sent with POST; nullopt: GET.
  bool changes = false;  ///< The request may change the server even if no response arrives.
};

struct HttpResponse {
  int status = 0;
  std::string body = {};
};

/// The time at which all waits of one exchange end.
class Deadline {
 public:
  /// `cancel`: a descriptor that ends all waits when it is readable; -1: none.
  explicit Deadline(Micros timeout, int cancel = -1)
      : at_(std::chrono::steady_clock::now() + timeout), cancel_(cancel) {}

  /// Waits until `fd` is ready for `events`. Returns false after the timeout or a cancellation.
  [[nodiscard]] bool Wait(int fd, short events) const;

 private:
  std::chrono::steady_clock::time_point at_;
  int cancel_;
};

/// Sends requests to one server, each on its own connection. No redirects, no proxies.
struct HttpClient {
  ServerAddress server = {};
  TlsCredentials tls = {};  ///< REQUIRES: loaded, if the server has TLS.
  std::string token = {};   ///< Sent as `Authorization: Bearer`, unless it is empty.
  Micros timeout = std::chrono::seconds{2};  ///< Limits a whole exchange.
  int cancel = -1;  ///< A descriptor that ends the exchange when it is readable; -1: none.
  std::string option = "--admin";  ///< The option that names the server, for messages.

  /// Sends one request and waits for the response. The Error says what failed and what to do. Its
  /// code is kBadConfig if the command line must change, otherwise kNetwork.
  [[nodiscard]] Result<HttpResponse> Send(const HttpRequest& request) const;
  /// Returns a connected, non-blocking socket. Tries every address of the server's name.
  [[nodiscard]] Result<net::Descriptor> Connect(const Deadline& deadline) const;
};

/// Returns the beginning of a request: the request line, Host and Authorization.
[[nodiscard]] std::string RequestHead(const ServerAddress& server, std::string_view method,
                                      std::string_view target, std::string_view token);

}  // namespace tidegate::cli
