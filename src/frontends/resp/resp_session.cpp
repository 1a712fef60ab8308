// SPDX-License-Identifier: Apache-2.0
// Commands that concern only the connection: authentication, protocol version, client handshakes.
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/message_text.hpp"
#include "frontends/resp/resp_frontend.hpp"

namespace tidegate {
namespace {

using Arguments = std::span<const std::string_view>;
using Id = RespCommandInfo::Id;

/// The version of Redis whose protocol and connection commands are supported; clients check it.
constexpr std::string_view kRedisVersion = "7.0.0";
constexpr std::string_view kWrongPass =
    "WRONGPASS invalid username-password pair or user is disabled.";
constexpr std::string_view kNoProto = "NOPROTO unsupported protocol version";

/// Returns true if `text` is a valid name for CLIENT SETNAME: printable, and without spaces.
bool IsClientName(std::string_view text) noexcept {
  for (const char c : text) {
    if (c < '!' || c > '~') return false;
  }
  return text.size() <= 256;
}

std::string WrongNumber(std::string_view name) {
  return "ERR wrong number of arguments for '" + std::string(name) + "' command";
}

std::string UnknownSubcommand(std::string_view name, std::string_view of) {
  return "ERR unknown subcommand '" + Printable(name.substr(0, 128)) + "' of " + std::string(of);
}

void WriteCommand(RespWriter& to, const RespCommandInfo& command) {
  to.Array(10);
  to.Text(command.name);
  to.Integer(command.arity);
  to.Set(2);
  to.Simple(command.kind == RespCommandInfo::Kind::kConnection ? "loading" : "write");
  to.Simple("fast");
  to.Integer(command.key);
  to.Integer(command.key);
  to.Integer(command.key == 0 ? 0 : 1);
  to.Set(0);
  for (int i = 0; i < 3; ++i) to.Array(0);
}

void WriteDocs(RespWriter& to, const RespCommandInfo& command) {
  to.Text(command.name);
  to.Map(command.arguments.empty() ? 3 : 4);
  to.Pair("summary", command.summary);
  to.Pair("since", "1.0.0");
  to.Pair("group", command.kind == RespCommandInfo::Kind::kConnection ? "connection" : "generic");
  if (command.arguments.empty()) return;
  // redis-cli shows the arguments to people, so all of them are sent as one text.
  to.Text("arguments");
  to.Array(1);
  to.Map(2);
  to.Pair("name", command.arguments);
  to.Pair("type", "string");
}

}  // namespace

void RespConnection::CheckRights() {
  access_ = frontend().pipeline().snapshot()->access;
  const Tokens& tokens = access_->tokens;
  rights_ = token_.empty() || tokens.empty()
                ? access_->of(ListenerId::kResp).ForPeer(peer_, tokens, access_->certificates)
                : AccessPolicy::ForToken(tokens.Find(token_));
}

std::optional<std::chrono::seconds> RespConnection::RecordFailure(AuthFailure::Reason reason,
                                                                  std::string_view command,
                                                                  std::string_view by) {
  // Connections of trusted proxies are throttled too: unlike HTTP, one connection has one client.
  AuthFailure failure{.peer = peer_,
                      .reason = reason,
                      .request = command,
                      .problem = reason == AuthFailure::Reason::kCertificate ? kNotListed : ""};
  if (!by.empty()) failure.by = by;
  return frontend().failures().Record(failure);
}

void RespConnection::RecordUnknown(std::string_view command) {
  if (peer_.verified && token_.empty()) {
    (void)RecordFailure(AuthFailure::Reason::kCertificate, command,
                        access_->certificates.NameOf(peer_));
  } else {
    (void)RecordFailure(AuthFailure::Reason::kMissing, command);
  }
}

std::string RespConnection::LogIn(Arguments arguments) {
  const Tokens& tokens = access_->tokens;
  const std::string_view secret = arguments.back();
  if (tokens.empty()) {
    return "ERR AUTH <password> called without any password configured: `access.tokens` is empty";
  }
  const std::string_view name = arguments.size() == 1 ? "default" : arguments.front();
  const Tokens::Token* const token = tokens.Find(secret);
  // The name is optional, but a wrong name is an error.
  const bool named = name == "default" || (token != nullptr && name == token->name);
  if (token == nullptr || !named) {
    // A name that no token has is not recorded: a client may have sent its token as the name.
    const auto wait =
        RecordFailure(AuthFailure::Reason::kWrong, "AUTH", tokens.HasName(name) ? name : "");
    if (!wait) return std::string(kWrongPass);
    state_ = State::kEnding;
    return "ERR too many wrong tokens from this address: the connection is closed; wait " +
           std::to_string(wait->count()) + " s, and AUTH with one of `access.tokens`";
  }
  token_ = secret;
  rights_ = AccessPolicy::ForToken(token);
  return {};
}

void RespConnection::ExecuteHere(const RespCommandInfo& command, Arguments arguments) {
  RespWriter to = writer();
  const bool open = command.id == Id::kAuth || command.id == Id::kHello ||
                    command.id == Id::kQuit || command.id == Id::kReset;
  if (rights_ == Rights::kNone && !open) {
    RecordUnknown(command.name);
    return to.Error("NOAUTH Authentication required.");
  }
  const int count = static_cast<int>(arguments.size());
  if (command.arity >= 0 ? count != command.arity : count < -command.arity) {
    return to.Error(WrongNumber(command.name));
  }
  switch (command.id) {
    case Id::kAuth: return Auth(arguments.subspan(1));
    case Id::kClient: return Client(arguments);
    case Id::kCluster: return to.Error("ERR This instance has cluster support disabled");
    case Id::kCommand: return Command(arguments);
    case Id::kConfig: return Config(arguments);
    case Id::kEcho: return to.Text(arguments[1]);
    case Id::kHello: return Hello(arguments.subspan(1));
    case Id::kInfo: return Info();
    case Id::kPing:
      if (count > 2) return to.Error(WrongNumber(command.name));
      return count == 1 ? to.Simple("PONG") : to.Text(arguments[1]);
    case Id::kQuit: state_ = State::kEnding; return to.Simple("OK");
    case Id::kReset: ResetSession(); return writer().Simple("RESET");
    case Id::kRole:
      to.Array(3);
      to.Text("master");
      to.Integer(0);
      return to.Array(0);
    case Id::kSelect:
      return arguments[1] == "0" ? to.Simple("OK") : to.Error("ERR DB index is out of range");
    case Id::kTime: {
      std::timespec now{};
      (void)clock_gettime(CLOCK_REALTIME, &now);
      to.Array(2);
      to.Text(std::to_string(now.tv_sec));
      return to.Text(std::to_string(now.tv_nsec / 1000));
    }
    default: return to.Error("ERR this command is not a connection command");
  }
}

void RespConnection::Auth(Arguments arguments) {
  if (arguments.size() > 2) return writer().Error("ERR syntax error");
  const std::string bad = LogIn(arguments);
  bad.empty() ? writer().Simple("OK") : writer().Error(bad);
}

void RespConnection::Hello(Arguments arguments) {
  int version = version_;
  if (!arguments.empty()) {
    std::int64_t wanted = 0;
    if (!ReadInteger(arguments[0], wanted)) {
      return writer().Error("ERR Protocol version is not an integer or out of range");
    }
    if (wanted != 2 && wanted != 3) return writer().Error(kNoProto);
    version = static_cast<int>(wanted);
  }
  std::optional<std::string_view> name;
  for (std::size_t i = 1; i < arguments.size();) {
    const std::size_t left = arguments.size() - i - 1;
    if (EqualsIgnoreCase(arguments[i], "auth") && left >= 2) {
      const std::string bad = LogIn(arguments.subspan(i + 1, 2));
      if (!bad.empty()) return writer().Error(bad);
      i += 3;
    } else if (EqualsIgnoreCase(arguments[i], "setname") && left >= 1) {
      name = arguments[i + 1];
      if (!IsClientName(*name)) {
        return writer().Error(
            "ERR Client names cannot contain spaces, newlines or special characters.");
      }
      i += 2;
    } else {
      return writer().Error("ERR Syntax error in HELLO option '" + Printable(arguments[i]) + "'");
    }
  }
  if (rights_ == Rights::kNone) {
    (void)RecordFailure(AuthFailure::Reason::kMissing, "hello");
    return writer().Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (name) name_ = *name;
  version_ = version;
  RespWriter to = writer();
  to.Map(8);
  to.Pair("server", "redis");
  to.Pair("version", kRedisVersion);
  to.Pair("proto", version_);
  to.Pair("id", static_cast<std::int64_t>(id_));
  to.Pair("mode", "standalone");
  to.Pair("role", "master");
  to.Text("modules");
  to.Array(0);
  to.Pair("tidegate", frontend().version());
}

void RespConnection::Client(Arguments arguments) {
  RespWriter to = writer();
  const std::string_view sub = arguments[1];
  const auto is = [&](std::string_view name, std::size_t count) {
    return EqualsIgnoreCase(sub, name) && arguments.size() == count;
  };
  if (is("setname", 3)) {
    if (!IsClientName(arguments[2])) {
      return to.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    name_ = arguments[2];
    return to.Simple("OK");
  }
  if (is("getname", 2)) return name_.empty() ? to.Null() : to.Text(name_);
  if (is("id", 2)) return to.Integer(static_cast<std::int64_t>(id_));
  if (is("setinfo", 4) || is("no-evict", 3) || is("no-touch", 3) ||
      (is("reply", 3) && EqualsIgnoreCase(arguments[2], "on")) ||
      (is("tracking", 3) && EqualsIgnoreCase(arguments[2], "off"))) {
    return to.Simple("OK");
  }
  if (is("info", 2) || EqualsIgnoreCase(sub, "list")) {
    return to.Verbatim("id=" + std::to_string(id_) + " name=" + name_ +
                       " db=0 resp=" + std::to_string(version_) + "\n");
  }
  to.Error(UnknownSubcommand(sub, "CLIENT") + ", or a wrong number of arguments");
}

void RespConnection::Command(Arguments arguments) {
  RespWriter to = writer();
  const std::span<const RespCommandInfo> all = RespCommands();
  const std::string_view sub = arguments.size() == 1 ? "info" : arguments[1];
  if (EqualsIgnoreCase(sub, "count")) return to.Integer(static_cast<std::int64_t>(all.size()));
  if (EqualsIgnoreCase(sub, "list")) {
    to.Array(all.size());
    for (const RespCommandInfo& command : all) to.Text(command.name);
    return;
  }
  // INFO and DOCS describe the commands that are named (nullptr: an unknown name), or all commands.
  std::vector<const RespCommandInfo*> chosen;
  if (arguments.size() > 2) {
    for (const auto name : arguments.subspan(2)) chosen.push_back(FindRespCommand(name));
  } else {
    for (const RespCommandInfo& command : all) chosen.push_back(&command);
  }
  if (EqualsIgnoreCase(sub, "info")) {
    to.Array(chosen.size());
    for (const auto* command : chosen) command == nullptr ? to.Null() : WriteCommand(to, *command);
  } else if (EqualsIgnoreCase(sub, "docs")) {
    std::erase(chosen, nullptr);
    to.Map(chosen.size());
    for (const auto* command : chosen) WriteDocs(to, *command);
  } else {
    to.Error(UnknownSubcommand(sub, "COMMAND"));
  }
}

/// Answers CONFIG GET. redis-benchmark reads `save` and `appendonly`: the reply says that nothing
/// is saved.
void RespConnection::Config(Arguments arguments) {
  RespWriter to = writer();
  if (!EqualsIgnoreCase(arguments[1], "get") || arguments.size() < 3) {
    return to.Error(
        "ERR only CONFIG GET is supported: change the configuration file of the server instead");
  }
  std::vector<std::pair<std::string_view, std::string_view>> known;
  for (const std::string_view name : arguments.subspan(2)) {
    if (EqualsIgnoreCase(name, "save")) known.emplace_back(name, "");
    if (EqualsIgnoreCase(name, "appendonly")) known.emplace_back(name, "no");
  }
  to.Map(known.size());
  for (const auto& [name, value] : known) to.Pair(name, value);
}

void RespConnection::Info() {
  const net::HttpStats& stats = listener_.stats();
  std::string text = "# Server\r\nredis_version:" + std::string(kRedisVersion) +
                     "\r\nredis_mode:standalone\r\ntidegate_version:" + frontend().version() +
                     "\r\n\r\n# Clients\r\nconnected_clients:" +
                     std::to_string(stats.open.load(std::memory_order_relaxed)) +
                     "\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Stats\r\n"
                     "total_connections_received:" +
                     std::to_string(stats.accepted.load(std::memory_order_relaxed)) +
                     "\r\ntotal_commands_processed:" +
                     std::to_string(stats.requests.load(std::memory_order_relaxed)) +
                     "\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n"
                     "# Cluster\r\ncluster_enabled:0\r\n";
  writer().Verbatim(text);
}

}  // namespace tidegate
