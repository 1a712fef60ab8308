// SPDX-License-Identifier: Apache-2.0
#include "cli/admin_client.hpp"

#include <algorithm>
#include <cstdlib>
#include <expected>
#include <ostream>
#include <utility>

#include "cli/console.hpp"
#include "net/endpoint.hpp"
#include "net/resolver.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

void PrintJson(std::string_view text, const Console& console) {
  console.out << ShownJson(text) << (text.ends_with('\n') ? "" : "\n");
}

/// Returns the server's address as it was given, and the option or variable that gave it.
std::pair<std::string, std::string> GivenAddress(const ClientOptions& options,
                                                 const std::string& option) {
  if (!options.server.empty()) return {options.server, option};
  const char* const variable = option == "--admin"    ? "TIDEGATE_ADMIN"
                               : option == "--server" ? "TIDEGATE_SERVER"
                                                      : nullptr;
  const char* const value = variable == nullptr ? nullptr : std::getenv(variable);
  if (value == nullptr || *value == '\0') return {"127.0.0.1", option};
  return {value, variable};
}

/// Returns true if all addresses of the host are loopback, or if there is none.
bool IsThisMachine(const ServerAddress& address) {
  const net::Found found = net::LookUp(address.host, address.port, net::Lookup::kName);
  return std::ranges::all_of(found.addresses, [](const net::SocketAddress& to) {
    return net::Endpoint::Of(to.storage).IsLoopback();
  });
}

}  // namespace

CommandResult<AdminClient> AdminClient::Make(const ClientOptions& options,
                                             std::uint16_t default_port, std::string option) {
  const auto usage = [](const std::string& message) {
    return std::unexpected(CommandError{kUsage, message});
  };
  const auto [given, given_by] = GivenAddress(options, option);
  auto address = ServerAddress::Parse(given, default_port);
  if (!address) return usage(given_by + ": " + address.error().message);
  auto token = ReadToken(options.token_file);
  if (!token) return usage(token.error().message);
  AdminClient client;
  if (address->tls) {
    auto tls = TlsCredentials::Load(options.tls);
    if (!tls) return usage(tls.error().message);
    client.http_.tls = std::move(*tls);
  } else if (options.tls.named()) {
    // A caller that names these files expects TLS, and must not go without it by mistake.
    return usage("--ca-file, --cert-file and --key-file are for TLS: use " + option + " https://" +
                 address->Text());
  }
  client.http_.server = std::move(*address);
  client.http_.timeout = options.timeout;
  client.http_.option = std::move(option);
  client.http_.token = std::move(*token);
  return client;
}

CommandError AdminClient::ErrorOf(const AdminResponse& response,
                                  const AdminRequest& request) const {
  const JsonView problem(response.object);
  std::string message = Shown(problem.Text("detail"));
  if (message.empty()) {
    message = "the server rejected the request with status " + std::to_string(response.status);
  }
  if (problem.Has("pointer")) message += " (at " + Shown(problem.Text("pointer")) + ")";
  if (response.status == 401 && http_.token.empty()) {
    message += "; name a token's file with --token-file, or set TIDEGATE_TOKEN";
  }
  // All listeners of a server speak HTTP, so this may be the wrong port. A listener that knows the
  // path would name the wrong member in `pointer`.
  const bool other_port = response.status == 404 && !problem.Has("pointer");
  if (other_port) {
    message += std::string("; is this the ") +
               (http_.option == "--admin" ? "admin port" : "port of the API") +
               "? Name another with " + http_.option;
  }
  for (const Hint& hint : request.hints) {
    if (hint.status == response.status && !other_port) message += "; " + hint.text;
  }
  // 5xx: the server failed, and the request was correct.
  return {response.status >= 500 ? kNoAnswer : kUsage, std::move(message), response.text};
}

CommandResult<AdminResponse> AdminClient::Send(const AdminRequest& request) const {
  const auto fail = [](int exit, std::string message) {
    return std::unexpected(CommandError{exit, std::move(message)});
  };
  HttpRequest sent{.target = request.target, .changes = request.changes};
  if (request.body) sent.body = json::serialize(*request.body);
  if (!IsUtf8(sent.body.value_or(""))) {
    return fail(kUsage, "the request is not valid UTF-8: " + Shown(*sent.body));
  }
  auto received = http_.Send(sent);
  if (!received) {
    const bool network = received.error().code == ErrorCode::kNetwork;
    return fail(network ? kNoAnswer : kUsage, Shown(received.error().message));
  }
  boost::system::error_code error;
  json::value value = json::parse(received->body, error);
  if (error || !value.is_object()) {
    return fail(kNoAnswer, http_.server.Display() +
                               " does not respond like a tidegate server (status " +
                               std::to_string(received->status) +
                               " and no JSON): name another with " + http_.option);
  }
  AdminResponse response{received->status, std::move(received->body),
                         std::move(value.get_object())};
  if (response.status < 300 || response.object.contains("allowed")) return response;
  return std::unexpected(ErrorOf(response, request));
}

void WarnAboutToken(std::string_view command, const AdminClient& client, const Console& console) {
  const HttpClient& http = client.http();
  if (http.server.tls || http.token.empty() || IsThisMachine(http.server)) return;
  console.err << "tidegate " << command << ": warning: the token is sent unencrypted to "
              << http.server.Text() << "; use https://, or a tunnel\n";
}

int ReportError(std::string_view command, const CommandError& error, bool json,
                const Console& console) {
  if (json && !error.text.empty()) PrintJson(error.text, console);
  console.err << "tidegate " << command << ": " << error.message << '\n';
  return error.exit;
}

void WarnIfNotRecorded(const JsonView& response, const Console& console) {
  if (!response.Has("recorded") || response.Bool("recorded")) return;
  console.out << console.Paint("not in the fleet's audit", Style::kWarning)
              << ": the store did not accept the record; the log of that node has it\n";
}

int RequestAndPrint(std::string_view command, const ClientOptions& options,
                    const Result<AdminRequest>& request, const Console& console, const Print& print,
                    const Print& print_problem) {
  if (!request) {
    return ReportError(command, {kUsage, Shown(request.error().message)}, options.json, console);
  }
  const auto client = AdminClient::Make(options);
  if (!client) return ReportError(command, client.error(), options.json, console);
  WarnAboutToken(command, *client, console);
  const auto response = client->Send(*request);
  if (!response) {
    boost::system::error_code error;
    const json::value problem = json::parse(response.error().text, error);
    if (print_problem && !error && !options.json) print_problem(JsonView(problem), console);
    return ReportError(command, response.error(), options.json, console);
  }
  if (options.json) {
    PrintJson(response->text, console);
  } else {
    print(JsonView(response->object), console);
  }
  return kOk;
}

}  // namespace tidegate::cli
