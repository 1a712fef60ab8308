// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.hpp"
#include "cli/http_client.hpp"
#include "cli/response.hpp"

namespace tidegate::cli {

/// The options of a command that sends requests to a server.
struct ClientOptions {
  /// HOST:PORT or https://HOST:PORT. If empty: the environment's TIDEGATE_ADMIN or TIDEGATE_SERVER,
  /// or else this machine.
  std::string server = {};
  std::string token_file = {};  ///< Empty: the environment's TIDEGATE_TOKEN.
  TlsOptions tls = {};          ///< Used only with https.
  Micros timeout = std::chrono::seconds{2};
  bool json = false;  ///< Print the response as JSON.
};

/// Advice to print for a status, if the command knows more about the problem than the server.
struct Hint {
  int status;
  std::string text;
};

struct AdminRequest {
  std::string target;                            ///< The path: `/v1/status`
  std::optional<boost::json::object> body = {};  ///< Sent with POST; nullopt: the request is a GET.
  bool changes = false;  ///< The request may change the server even if no response arrives.
  std::vector<Hint> hints = {};
};

struct AdminResponse {
  int status = 0;
  std::string text = {};  ///< The body as it was received.
  boost::json::object object = {};
};

/// The reason why a command failed.
struct CommandError {
  int exit;               ///< kUsage or kNoAnswer.
  std::string message;    ///< Safe to print to a terminal.
  std::string text = {};  ///< The problem document, if the server sent one.
};

template <class T>
using CommandResult = std::expected<T, CommandError>;

/// Sends requests to the admin port or the API of one server, each on a connection of its own.
class AdminClient {
 public:
  /// Reads the token and the TLS files. `default_port` and `option` belong to the listener.
  [[nodiscard]] static CommandResult<AdminClient> Make(const ClientOptions& options,
                                                       std::uint16_t default_port = kAdminPort,
                                                       std::string option = "--admin");

  /// Returns the response if it is a success or a decision, including a denial.
  [[nodiscard]] CommandResult<AdminResponse> Send(const AdminRequest& request) const;

  /// Ends requests in progress when `fd` becomes readable.
  void CancelBy(int fd) noexcept { http_.cancel = fd; }
  [[nodiscard]] const HttpClient& http() const noexcept { return http_; }
  [[nodiscard]] const ServerAddress& address() const noexcept { return http_.server; }

 private:
  AdminClient() = default;
  [[nodiscard]] CommandError ErrorOf(const AdminResponse& response,
                                     const AdminRequest& request) const;

  HttpClient http_;
};

/// Warns, before the first request, if the token would be sent unencrypted to another machine.
void WarnAboutToken(std::string_view command, const AdminClient& client, const Console& console);

using Print = std::function<void(const JsonView&, const Console&)>;
/// Sends `request` and prints the response with `print`, or with --json as it was received. If the
/// server reports an error, calls `print_problem` with the problem document, but not with --json.
/// If `request` is an Error in the command line, only reports it. Returns an exit code.
[[nodiscard]] int RequestAndPrint(std::string_view command, const ClientOptions& options,
                                  const Result<AdminRequest>& request, const Console& console,
                                  const Print& print, const Print& print_problem = {});
/// Warns if a change was made, but could not be recorded in the fleet's audit log.
void WarnIfNotRecorded(const JsonView& response, const Console& console);
/// Prints an error; with `json` also the server's problem document. Returns its exit code.
[[nodiscard]] int ReportError(std::string_view command, const CommandError& error, bool json,
                              const Console& console);

}  // namespace tidegate::cli
