// SPDX-License-Identifier: Apache-2.0
#include "cli/admin_client.hpp"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "cli/exit.hpp"
#include "cli/shown_text.hpp"
#include "cli/token.hpp"
#include "net/endpoint.hpp"
#include "net/resolver.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

std::string JsonLine(std::string_view json_text) {
  std::string text = ShownJson(json_text);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

/// `; is this the admin port? ...`: the doors of one server all speak HTTP, and what one of them
/// knows is nothing to the others. Whoever knows the path says which member is wrong.
std::string WrongDoor(const Members& problem, int status, const std::string& option) {
  if (status != 404 || problem.Has("pointer")) return {};
  return std::string("; is this the ") + (option == "--admin" ? "admin port" : "port of the API") +
         "? Name another with " + option;
}

AskFailure Refused(const AdminAnswer& answer, const AdminQuestion& question, bool with_token,
                   const std::string& option) {
  const Members problem(answer.object);
  std::string message = Shown(problem.Text("detail"));
  if (message.empty()) {
    message = "the server refused the question with status " + std::to_string(answer.status);
  }
  if (problem.Has("pointer")) message += " (at " + Shown(problem.Text("pointer")) + ")";
  if (answer.status == 401 && !with_token) {
    message += "; name a token's file with --token-file, or set TIDEGATE_TOKEN";
  }
  const std::string elsewhere = WrongDoor(problem, answer.status, option);
  message += elsewhere;
  for (const Hint& hint : question.hints) {
    if (hint.status == answer.status && elsewhere.empty()) message += "; " + hint.text;
  }
  // 5xx: it could not, though there is nothing wrong with the question.
  return {answer.status >= 500 ? kNoAnswer : kUsage, std::move(message), answer.text};
}

/// The first text that JSON cannot hold; nullptr: there is none.
const json::string* NotUtf8(const json::value& value) {
  if (const json::string* const text = value.if_string()) return IsUtf8(*text) ? nullptr : text;
  if (const json::array* const list = value.if_array()) {
    for (const json::value& each : *list) {
      if (const json::string* const text = NotUtf8(each)) return text;
    }
  }
  if (const json::object* const object = value.if_object()) {
    for (const auto& member : *object) {
      if (const json::string* const text = NotUtf8(member.value())) return text;
    }
  }
  return nullptr;
}

/// Which server, and what says so.
struct Place {
  std::string text;
  std::string option;
};

Place PlaceOf(const AskOptions& options, const std::string& option) {
  if (!options.server.empty()) return {options.server, option};
  const std::string variable = option == "--admin"    ? "TIDEGATE_ADMIN"
                               : option == "--server" ? "TIDEGATE_SERVER"
                                                      : "";
  const char* const value = variable.empty() ? nullptr : std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return {"127.0.0.1", option};
  return {value, variable};
}

/// Whether all that is sent there stays on this machine. A name that leads nowhere gets nothing.
bool StaysHere(const ServerAddress& address) {
  const net::Found found = net::LookUp(address.host, address.port, net::Lookup::kName);
  return std::ranges::all_of(found.addresses, [](const net::SocketAddress& to) {
    return net::Endpoint::Of(to.storage).IsLoopback();
  });
}

}  // namespace

Asked<AdminClient> AdminClient::Make(const AskOptions& options, std::uint16_t default_port,
                                     std::string option) {
  const Place place = PlaceOf(options, option);
  auto address = ServerAddress::Parse(place.text, default_port);
  if (!address) {
    return std::unexpected(AskFailure{kUsage, place.option + ": " + address.error().message});
  }
  auto token = ReadToken(options.token_file);
  if (!token) return std::unexpected(AskFailure{kUsage, token.error().message});
  AdminClient client;
  if (address->tls) {
    auto keyring = Keyring::Load(options.tls);
    if (!keyring) return std::unexpected(AskFailure{kUsage, keyring.error().message});
    client.keyring_ = std::move(*keyring);
  } else if (options.tls.named()) {
    // Whoever names them wants TLS, and must not go without it unawares.
    return std::unexpected(
        AskFailure{kUsage, "--ca-file, --cert-file and --key-file are for TLS: say " + option +
                               " https://" + address->Text()});
  }
  client.address_ = std::move(*address);
  client.token_ = std::move(*token);
  client.patience_ = {.timeout = options.timeout, .option = std::move(option)};
  return client;
}

Asked<AdminAnswer> AdminClient::Ask(const AdminQuestion& question) const {
  if (question.body) {
    for (const auto& member : *question.body) {
      if (const json::string* const text = NotUtf8(member.value())) {
        return std::unexpected(AskFailure{
            kUsage,
            "\"" + Shown(*text) + "\" is not UTF-8, and a question cannot hold anything else"});
      }
    }
  }
  auto came = cli::Ask(address_,
                       {.method = question.body ? "POST" : "GET",
                        .target = question.target,
                        .body = question.body ? json::serialize(*question.body) : "",
                        .token = token_,
                        .changes = question.changes},
                       patience_, keyring_);
  if (!came) {
    const bool network = came.error().code == ErrorCode::kNetwork;
    return std::unexpected(AskFailure{network ? kNoAnswer : kUsage, Shown(came.error().message)});
  }
  boost::system::error_code error;
  json::value value = json::parse(came->body, error);
  if (error || !value.is_object()) {
    return std::unexpected(
        AskFailure{kNoAnswer, address_.Told() + " does not answer like a tidegate server (status " +
                                  std::to_string(came->status) +
                                  " and no JSON): name another with " + patience_.option});
  }
  AdminAnswer answer{came->status, std::move(came->body), std::move(value.get_object())};
  // A denial is an answer as well.
  if (answer.status < 300 || answer.object.contains("allowed")) return answer;
  return std::unexpected(Refused(answer, question, !token_.empty(), patience_.option));
}

std::string AdminClient::Warning() const {
  if (address_.tls || token_.empty() || StaysHere(address_)) return {};
  return "the token travels in the clear to " + address_.Text() +
         ", for everybody on the way to read: a tunnel keeps it secret, or https:// where TLS is "
         "spoken";
}

void Warn(std::string_view command, const AdminClient& client, const Console& console) {
  const std::string warning = client.Warning();
  if (!warning.empty()) console.err << "tidegate " << command << ": warning: " << warning << '\n';
}

int Tell(std::string_view command, const AskFailure& failure, bool json, const Console& console) {
  if (json && !failure.text.empty()) console.out << JsonLine(failure.text);
  console.err << "tidegate " << command << ": " << failure.message << '\n';
  return failure.exit;
}

void WarnIfNotRecorded(const Members& answer, const Console& console) {
  if (!answer.Has("recorded") || answer.Yes("recorded")) return;
  console.out << Inked("not in the fleet's audit", Ink::kWarning, console.colours)
              << ": the store did not take it; it is in the log of that node\n";
}

int PrintAnswer(const AdminAnswer& answer, const AskOptions& options, const Console& console,
                const std::function<void(Members)>& print) {
  if (options.json) {
    console.out << JsonLine(answer.text);
  } else {
    print(Members(answer.object));
  }
  return kOk;
}

int AskAndPrint(std::string_view command, const AskOptions& options, const AdminQuestion& question,
                const Console& console, const std::function<void(Members)>& print) {
  const auto client = AdminClient::Make(options);
  if (!client) return Tell(command, client.error(), options.json, console);
  Warn(command, *client, console);
  const auto answer = client->Ask(question);
  if (!answer) return Tell(command, answer.error(), options.json, console);
  return PrintAnswer(*answer, options, console, print);
}

}  // namespace tidegate::cli
