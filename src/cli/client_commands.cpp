// SPDX-License-Identifier: Apache-2.0
// The command lines of the commands that send requests to a server.
#include <expected>
#include <limits>

#include "base/failure.hpp"
#include "base/units.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "rules/limit_text.hpp"

namespace tidegate::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr const char* kExitCodes =
    "Exits with 0 if the server answered, 2 if it rejected the request, 3 if there was no answer."
    "\n\n";

CLI::Option* AddText(CLI::App& app, const std::string& name, std::string& value,
                     const std::string& help, const std::string& type) {
  return app.add_option(name, value, help)->type_name(type);
}

CLI::Option* AddList(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                     const std::string& help, const std::string& type) {
  return app.add_option(name, values, help)->type_name(type)->expected(1)->take_all();
}

void AddFile(CLI::App& app, const std::string& name, std::string& file, const std::string& help) {
  AddParsed(app, name, file, ReadNotEmpty, help, "FILE");
}

/// Adds `--token-file`, `--timeout` and `--json`.
void AddClientOptions(CLI::App& app, ClientOptions& options) {
  AddFile(app, "--token-file", options.token_file,
          "A file with the caller's token, if the server requires one (default: the environment's "
          "TIDEGATE_TOKEN)");
  AddParsed(app, "--timeout", options.timeout,
            DurationWithin(milliseconds{1}, hours{24}, "wait between 1ms and 24h"),
            "How long to wait for a response (default: 2s)", "DURATION");
  app.add_flag("--json", options.json, "Print the JSON of the response as received");
}

/// Adds `--ca-file`, `--cert-file` and `--key-file`.
void AddTlsOptions(CLI::App& app, TlsOptions& files) {
  AddFile(app, "--ca-file", files.ca,
          "With https://: the trusted authorities, in PEM form (default: the environment's "
          "TIDEGATE_CA_FILE, else the system's)");
  AddFile(app, "--cert-file", files.certificate,
          "With https://: the caller's certificate, if the server requires one");
  AddFile(app, "--key-file", files.key, "The key of that certificate (default: in the same file)");
}

/// Adds `--server` and the options that all clients have, except those of TLS.
void AddServerOptions(CLI::App& app, ClientOptions& options, const std::string& help) {
  AddParsed(app, "--server", options.server, ReadNotEmpty,
            help + " (default: the environment's TIDEGATE_SERVER, else 127.0.0.1:8081)",
            "HOST:PORT");
  AddClientOptions(app, options);
}

void AddAdminOptions(CLI::App& app, ClientOptions& options) {
  AddParsed(
      app, "--admin", options.server, ReadNotEmpty,
      "Address of the server's admin port; over TLS, https://HOST:PORT (default: the environment's "
      "TIDEGATE_ADMIN, else 127.0.0.1:9180)",
      "HOST:PORT");
  AddClientOptions(app, options);
  AddTlsOptions(app, options.tls);
}

/// Adds RULE, IDENTITY, `--key` and `--part`. Returns RULE.
CLI::Option* AddKeySelector(CLI::App& app, KeySelector& selector) {
  CLI::Option* const rule = AddText(app, "rule", selector.rule, "The rule's id", "RULE");
  // IDENTITY needs RULE. It is not required, because some rules have no identity.
  AddText(app, "identity", selector.identity,
          "The value of the rule's first source; none for a rule that counts by `const`",
          "IDENTITY")
      ->needs(rule);
  AddText(app, "--key", selector.key, "Instead of IDENTITY: the key as `tidegate hot` shows it",
          "KEY");
  AddList(
      app, "--part", selector.parts,
      "Instead of IDENTITY: a source and its value; repeat the option for each source of the rule",
      "SOURCE=VALUE");
  return rule;
}

Result<std::string> ReadBanDuration(const std::string& text) {
  // The bounds are those of the admin API.
  const auto duration =
      DurationWithin(milliseconds{1}, std::chrono::days{3660},
                     "between 1ms and 3660d; without --for the change has no end")(text);
  if (!duration) return std::unexpected(duration.error());
  return text;
}

/// Reads a limit. Rejects 0 itself, because the server would suggest `deny`, which is for clients
/// that the configuration rejects.
Result<std::string> ReadLimit(const std::string& text) {
  if (text.starts_with("0/")) {
    return Failure(ErrorCode::kBadArgument,
                   text + " would deny every request: to deny a key, use `tidegate ban`");
  }
  if (const auto limit = LimitText::Parse(text); !limit) return std::unexpected(limit.error());
  return text;
}

/// Reads a rate such as `20000/s` and returns it per second; a number alone is per second.
Result<double> ReadRate(const std::string& text) {
  if (text == "0" || text.starts_with("0/")) {
    return Failure(ErrorCode::kBadArgument,
                   text + " sends nothing: the rate must be at least 1, as in 100/s");
  }
  const auto limit = LimitText::Parse(text.find('/') == std::string::npos ? text + "/s" : text);
  if (!limit) return std::unexpected(limit.error());
  return static_cast<double>(limit->count) / std::chrono::duration<double>(limit->period).count();
}

void AddDuration(CLI::App& app, ChangeOptions& options) {
  AddParsed(app, "--for", options.duration, ReadBanDuration,
            "Duration (default: until `tidegate lift`)", "DURATION");
  AddText(app, "--reason", options.reason, "The reason, shown to operators; at most 200 bytes",
          "TEXT");
}

/// Adds a command with the exit codes that most commands have.
template <class Options>
Command<Options> Add(CLI::App& app, const std::string& name, const char* help,
                     const char* example) {
  Command<Options> command(app, name, help);
  command.app.footer(std::string(kExitCodes) + "Example:\n  " + example);
  return command;
}

void AddDecide(CLI::App& app, Action& action) {
  const Command<DecideOptions> command(app, "decide", "Request one decision from a server");
  CLI::App& decide = command.app;
  DecideOptions& options = *command.options;
  AddText(decide, "rule", options.rule, "The rule's id", "RULE")->required();
  AddText(decide, "identity", options.identity, "The identity, as alice or 203.0.113.7", "IDENTITY")
      ->required();
  AddParsed(decide, "--cost", options.cost, ReadCost, "The cost (default: the rule's)", "N");
  decide.add_flag("--peek", options.peek, "Decide without a charge");
  AddServerOptions(decide, options.client,
                   "Address of the server's API; over TLS, https://HOST:PORT");
  AddTlsOptions(decide, options.client.tls);
  decide.footer(
      "Exits with 0 if allowed, 1 if denied, 2 if the server rejected the request, 3 if there was "
      "no answer.\n"
      "\n"
      "Examples: send a mail only if the rule allows it; the same over TLS\n"
      "  tidegate decide mails alice && send-mail\n"
      "  tidegate decide mails alice --server https://limits.example.com:8081 && send-mail");
  command.Does(action, Decide);
}

void AddBench(CLI::App& app, Action& action) {
  const Command<BenchOptions> command(app, "bench", "Load a server and report the results");
  CLI::App& bench = command.app;
  BenchOptions& options = *command.options;
  AddText(bench, "--rule", options.rule, "The rule's id", "RULE")->required();
  AddNumber<std::int64_t>(bench, "--identities", options.identities, 1, 1'000'000'000,
                          "Number of identities: bench-0, bench-1, ... (default: 1000)");
  AddNumber(bench, "--zipf", options.zipf, 0.0, 10.0,
            "Send a share of the requests proportional to 1/k^S for the k-th identity (default: "
            "equal shares)",
            "S");
  bench.add_flag("--addresses", options.addresses,
                 "Identities are 10.0.0.1, 10.0.0.2, ...: for rules that count by client_ip");
  AddNumber(bench, "--connections", options.connections, 1, 10'000,
            "Open connections (default: 16)");
  AddNumber(bench, "--threads", options.threads, 1, 256,
            "Threads that share the connections (default: 1)");
  AddParsed(bench, "--for", options.duration,
            DurationWithin(milliseconds{10}, hours{24}, "load for between 10ms and 24h"),
            "Duration (default: 5s)", "DURATION");
  AddParsed(bench, "--rate", options.rate, ReadRate,
            "Requests per second, instead of one after each response; latency counts from the time "
            "at which a request was due",
            "N/s");
  AddParsed(bench, "--resp", options.resp, ReadNotEmpty,
            "Send TG.DECIDE to the RESP frontend, without TLS, instead of the API", "HOST:PORT");
  AddNumber(bench, "--pipeline", options.pipeline, 1, 10'000,
            "Requests in flight per connection, with --resp (default: 1)");
  AddServerOptions(bench, options.client, "Address of the server's API, without TLS");
  bench.get_option("--json")->description("Print the report as JSON");
  bench.footer(
      "The load charges the rule's keys: use a rule or a server reserved for the load. Ctrl-C ends "
      "the load early.\n"
      "Exits with 0, with 2 if the server rejects such requests, with 3 if there was no answer.\n"
      "\n"
      "Examples:\n"
      "  tidegate bench --rule per-key --identities 100000 --zipf 1.1 --connections 64 --for 10s\n"
      "  tidegate bench --rule per-key --rate 5000/s\n"
      "  tidegate bench --rule per-key --resp 127.0.0.1:6380 --pipeline 32");
  command.Does(action, Bench);
}

void AddTop(CLI::App& app, Action& action) {
  const auto command =
      Add<TopOptions>(app, "top", "Show rates, rules and hot keys of a server, live",
                      "tidegate top --every 500ms\n  tidegate top --once");
  AddParsed(command.app, "--every", command.options->every,
            DurationWithin(milliseconds{50}, hours{24}, "refresh between every 50ms and every 24h"),
            "How often to refresh (default: 1s)", "DURATION");
  command.app.add_flag("--once", command.options->once,
                       "Print one view as plain text and exit, also in a terminal");
  AddAdminOptions(command.app, command.options->client);
  command.app.get_option("--json")->description("Print one JSON object per refresh");
  command.Does(action, Top);
}

void AddListings(CLI::App& app, Action& action) {
  const auto plain = [&](const char* name, const char* help, const char* example,
                         int (*run)(const ClientOptions&, const Console&)) {
    const auto command = Add<ClientOptions>(app, name, help, example);
    AddAdminOptions(command.app, *command.options);
    command.Does(action, run);
  };
  plain("overrides", "List the keys that are banned, allowed or have their own quota",
        "tidegate overrides", ListOverrides);
  plain("rules", "List the rules in force and their counts", "tidegate rules", ListRules);
  const auto hot =
      Add<HotOptions>(app, "hot", "List the keys with the most requests, denials or cost",
                      "tidegate hot --by denials --limit 5");
  AddText(hot.app, "--by", hot.options->by, "requests, denials or cost (default: requests)", "WHAT")
      ->check(CLI::IsMember({"requests", "denials", "cost"}));
  AddNumber<std::int64_t>(hot.app, "--limit", hot.options->limit, 1, 100,
                          "Number of keys, up to 100 (default: 20)");
  AddAdminOptions(hot.app, hot.options->client);
  hot.Does(action, ListHot);
  const auto audit =
      Add<AuditOptions>(app, "audit", "List changes and failed authentications, newest first",
                        "tidegate audit --limit 20");
  AddNumber<std::int64_t>(audit.app, "--limit", audit.options->limit, 1, 1000,
                          "Number of records, up to 1000 (default: 100)");
  AddAdminOptions(audit.app, audit.options->client);
  audit.Does(action, ListAudit);
  plain("status", "Print the state of a server since its start",
        "tidegate status\n"
        "  tidegate status --admin https://node7.example.com:9180 --ca-file ca.pem",
        Status);
}

void AddExplain(CLI::App& app, Action& action) {
  const auto command = Add<ExplainOptions>(
      app, "explain", "Explain the decision that a request would get; charges nothing",
      "tidegate explain --method POST --path /v1/login --client-ip 203.0.113.7\n"
      "  tidegate explain per-key abc");
  CLI::App& sub = command.app;
  ExplainOptions& options = *command.options;
  AddKeySelector(sub, options.selector);
  AddText(sub, "--method", options.method, "Method of the request, as GET", "METHOD");
  AddText(sub, "--host", options.host, "Host of the request", "HOST");
  AddText(sub, "--path", options.path, "Path of the request, with its query", "PATH");
  AddList(sub, "--header", options.headers, "Header of the request; repeat the option for more",
          "'NAME: VALUE'");
  AddText(sub, "--client-ip", options.client_ip, "The client's address", "ADDRESS");
  AddText(sub, "--peer", options.peer,
          "Instead of --client-ip: the address that connects; with the headers it determines the "
          "client's address",
          "ADDRESS");
  sub.add_flag("--gateway", options.gateway, "Explain a request to the gateway, with its routes");
  AddParsed(sub, "--cost", options.cost, ReadCost, "The cost (default: the rules')", "N");
  AddText(sub, "--lease", options.lease, "The lease's name, for rules that count leases", "NAME");
  AddAdminOptions(sub, options.client);
  command.Does(action, Explain);
}

void AddInspect(CLI::App& app, Action& action) {
  const auto command = Add<InspectOptions>(app, "inspect", "Show what is stored for a key",
                                           "tidegate inspect per-key abc");
  AddKeySelector(command.app, command.options->selector)->required();
  AddAdminOptions(command.app, command.options->client);
  command.Does(action, Inspect);
}

void AddChanges(CLI::App& app, Action& action) {
  // `more` adds the options that only this command has.
  const auto add = [&](Change change, const char* help, const char* example, auto more) {
    const auto command = Add<ChangeOptions>(app, std::string(Name(change)), help, example);
    command.options->change = change;
    AddKeySelector(command.app, command.options->selector)->required();
    more(command.app, *command.options);
    AddAdminOptions(command.app, command.options->client);
    command.Does(action, ChangeKey);
  };
  const auto nothing = [](CLI::App&, ChangeOptions&) {};
  add(Change::kReset, "Forget all charges of a key", "tidegate reset per-key abc", nothing);
  add(Change::kGrant, "Return units to a key, up to its capacity", "tidegate grant per-key abc 50",
      [](CLI::App& sub, ChangeOptions& options) {
        AddText(sub, "amount", options.amount, "Number of units", "AMOUNT");
      });
  add(Change::kRefund, "Return a charge, once per id",
      "tidegate refund per-key abc --id order-17 --cost 3",
      [](CLI::App& sub, ChangeOptions& options) {
        AddText(sub, "--id", options.id, "Id of the refund: applied once, even if sent again",
                "ID");
        AddParsed(sub, "--cost", options.cost, ReadCost,
                  "The cost that was charged (default: the rule's)", "N");
        AddParsed(sub, "--age", options.age, ParseDuration,
                  "Time since the charge (default: just now)", "DURATION");
      });
  add(Change::kBan, "Deny all requests of a key",
      "tidegate ban per-key abc --for 1h --reason 'scraping'", AddDuration);
  add(Change::kAllow, "Let a key pass uncounted",
      "tidegate allow per-key abc --for 1h --reason 'load test'", AddDuration);
  add(Change::kOverride, "Give a key another quota than its rule's",
      "tidegate override per-key abc --limit 5000/s --burst 10000 --for 24h",
      [](CLI::App& sub, ChangeOptions& options) {
        AddParsed(sub, "--limit", options.limit, ReadLimit, "Requests per period, as 5000/s",
                  "LIMIT");
        AddParsed(sub, "--burst", options.burst,
                  CountWithin(1, std::numeric_limits<std::int64_t>::max(),
                              "a burst is at least 1; without --burst the limit is the burst"),
                  "Capacity of token_bucket and gcra (default: the limit)", "N");
        AddDuration(sub, options);
      });
  add(Change::kLift, "Remove a ban, an allowance or a quota", "tidegate lift per-key abc", nothing);
}

void AddReload(CLI::App& app, Action& action) {
  const auto command = Add<ClientOptions>(
      app, "reload", "Reload the configuration of a server and report the outcome",
      "tidegate reload");
  // Names of new upstreams may have to be looked up.
  command.options->timeout = std::chrono::seconds{30};
  AddAdminOptions(command.app, *command.options);
  command.app.get_option("--timeout")
      ->description("How long to wait for the reload (default: 30s)");
  command.Does(action, Reload);
}

}  // namespace

void AddClientCommands(CLI::App& app, Action& action) {
  AddDecide(app, action);
  AddBench(app, action);
  AddTop(app, action);
  AddListings(app, action);
  AddExplain(app, action);
  AddInspect(app, action);
  AddChanges(app, action);
  AddReload(app, action);
}

}  // namespace tidegate::cli
