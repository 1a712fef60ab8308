// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/change.hpp"
#include "cli/command_line.hpp"
#include "cli/explain.hpp"
#include "cli/inspect.hpp"
#include "cli/listings.hpp"
#include "cli/reload.hpp"
#include "cli/status.hpp"
#include "cli/top.hpp"
#include "core/refuse.hpp"
#include "rules/duration.hpp"
#include "rules/limit_text.hpp"

namespace tidegate::cli {
namespace {

constexpr const char* kCodes =
    "Exits with 0 if it was answered, 2 if the question makes no sense or is not for this caller, "
    "3 "
    "without an answer.\n\n";

/// A subcommand whose options live as long as the action that uses them.
template <class Options>
struct Command {
  CLI::App* app;
  std::shared_ptr<Options> options;

  template <class Run>
  void Does(Action& action, Run run) const {
    app->callback([&action, shared = options, run] {
      action = [shared, run] { return run(*shared, StandardConsole()); };
    });
  }
};

template <class Options>
Command<Options> Add(CLI::App& app, const char* name, const char* help, const char* example) {
  CLI::App* const sub = app.add_subcommand(name, help);
  sub->footer(std::string(kCodes) + "Example:\n  " + example);
  return {sub, std::make_shared<Options>()};
}

/// As the admin API has it.
constexpr Micros kLongestWord = std::chrono::days{3660};

Result<std::string> ReadLasting(const std::string& text) {
  const auto lasting = ReadWithin(text, std::chrono::milliseconds{1}, kLongestWord,
                                  "between 1ms and 3660d; without --for it has no end");
  if (!lasting) return std::unexpected(lasting.error());
  return text;
}

/// The server would name `deny`, which is for whom the configuration refuses.
Result<std::string> ReadLimit(const std::string& text) {
  if (text.starts_with("0/")) {
    return Refuse(ErrorCode::kBadQuota,
                  text + " would refuse every request: to refuse a key, use `tidegate ban`");
  }
  if (const auto limit = LimitText::Parse(text); !limit) return std::unexpected(limit.error());
  return text;
}

Result<std::int64_t> ReadBurst(const std::string& text) {
  auto burst = ReadCount(text);
  if (burst && *burst < 1) {
    return Refuse(
        ErrorCode::kBadQuota,
        text + " is out of range: a burst is at least 1; without --burst it is the limit");
  }
  return burst;
}

Result<Micros> ReadEvery(const std::string& text) {
  return ReadWithin(text, std::chrono::milliseconds{50}, std::chrono::hours{24},
                    "refresh between every 50ms and every 24h");
}

Result<std::optional<Micros>> ReadAge(const std::string& text) {
  const auto age = ParseDuration(text);
  if (!age) return std::unexpected(age.error());
  return std::optional<Micros>(*age);
}

void AddExplain(CLI::App& app, Action& action) {
  const auto command = Add<ExplainOptions>(
      app, "explain", "Say what would be decided about a request, and why; charges nothing",
      "tidegate explain --method POST --path /v1/login --client-ip 203.0.113.7\n"
      "  tidegate explain per-key abc");
  CLI::App& sub = *command.app;
  ExplainOptions& options = *command.options;
  AddWhom(sub, options.whom);
  sub.add_option("--method", options.method, "Of the request, as GET")->type_name("METHOD");
  sub.add_option("--host", options.host, "Of the request")->type_name("HOST");
  sub.add_option("--path", options.path, "Of the request; with its query, if it has one")
      ->type_name("PATH");
  sub.add_option("--header", options.headers, "Of the request; once for each")
      ->type_name("'NAME: VALUE'")
      ->expected(1)
      ->take_all();
  sub.add_option("--client-ip", options.client_ip, "The client's address")->type_name("ADDRESS");
  sub.add_option("--peer", options.peer,
                 "Instead: the address that connected, from which headers may lead to the client's")
      ->type_name("ADDRESS");
  sub.add_flag("--gateway", options.gateway, "As it would come through the gateway, by its routes");
  AddParsed(sub, "--cost", options.cost, ReadCost, "What it costs (default: as the rules say)",
            "N");
  sub.add_option("--lease", options.lease, "The lease's name, of rules that count leases")
      ->type_name("NAME");
  AddAdminOptions(sub, options.ask);
  command.Does(action, Explain);
}

void AddInspect(CLI::App& app, Action& action) {
  const auto command = Add<InspectOptions>(app, "inspect", "Show what is stored for a key",
                                           "tidegate inspect per-key abc");
  AddWhom(*command.app, command.options->whom)->required();
  AddAdminOptions(*command.app, command.options->ask);
  command.Does(action, Inspect);
}

/// `more` adds what only this one has.
template <class More>
void AddChange(CLI::App& app, Action& action, Change change, const char* help, const char* example,
               More more) {
  const std::string name(Name(change));
  const auto command = Add<ChangeOptions>(app, name.c_str(), help, example);
  command.options->change = change;
  AddWhom(*command.app, command.options->whom)->required();
  more(*command.app, *command.options);
  AddAdminOptions(*command.app, command.options->ask);
  command.Does(action, ChangeKey);
}

void AddLasting(CLI::App& app, ChangeOptions& options) {
  AddParsed(app, "--for", options.lasting, ReadLasting, "How long (default: until it is lifted)",
            "DURATION");
  app.add_option("--reason", options.reason, "Why, for people; at most 200 bytes")
      ->type_name("TEXT");
}

void AddChanges(CLI::App& app, Action& action) {
  const auto nothing = [](CLI::App&, ChangeOptions&) {};
  AddChange(app, action, Change::kReset, "Forget what a key has used", "tidegate reset per-key abc",
            nothing);
  AddChange(app, action, Change::kGrant, "Give a key units back, never beyond its capacity",
            "tidegate grant per-key abc 50", [](CLI::App& sub, ChangeOptions& options) {
              sub.add_option("amount", options.amount, "How many units")->type_name("AMOUNT");
            });
  AddChange(
      app, action, Change::kRefund, "Give a charge back, once per id",
      "tidegate refund per-key abc --id order-17 --cost 3",
      [](CLI::App& sub, ChangeOptions& options) {
        sub.add_option("--id", options.id, "Applies once; may be sent again")->type_name("ID");
        AddParsed(sub, "--cost", options.cost, ReadCost,
                  "What was charged (default: as the rule says)", "N");
        AddParsed(sub, "--age", options.age, ReadAge, "How long ago (default: just now)",
                  "DURATION");
      });
  AddChange(app, action, Change::kBan, "Refuse a key, whatever it has left",
            "tidegate ban per-key abc --for 1h --reason 'scraping'", AddLasting);
  AddChange(app, action, Change::kAllow, "Let a key pass uncounted",
            "tidegate allow per-key abc --for 1h --reason 'load test'", AddLasting);
  AddChange(app, action, Change::kOverride, "Give a key another quota than its rule's",
            "tidegate override per-key abc --limit 5000/s --burst 10000 --for 24h",
            [](CLI::App& sub, ChangeOptions& options) {
              AddParsed(sub, "--limit", options.limit, ReadLimit, "So many per period, as 5000/s",
                        "LIMIT");
              AddParsed(sub, "--burst", options.burst, ReadBurst,
                        "Of token_bucket and gcra (default: the limit)", "N");
              AddLasting(sub, options);
            });
  AddChange(app, action, Change::kLift, "Take a ban, an allowance or a quota back",
            "tidegate lift per-key abc", nothing);
}

void AddListings(CLI::App& app, Action& action) {
  const auto overrides =
      Add<AskOptions>(app, "overrides", "List who is banned, allowed or has a quota of its own",
                      "tidegate overrides");
  AddAdminOptions(*overrides.app, *overrides.options);
  overrides.Does(action, ListOverrides);
  const auto rules =
      Add<AskOptions>(app, "rules", "List the rules in force and their counts", "tidegate rules");
  AddAdminOptions(*rules.app, *rules.options);
  rules.Does(action, ListRules);
  const auto hot =
      Add<HotOptions>(app, "hot", "List the keys that ask most, are denied most or cost most",
                      "tidegate hot --by denials --limit 5");
  hot.app->add_option("--by", hot.options->by, "requests, denials or cost (default: requests)")
      ->check(CLI::IsMember({"requests", "denials", "cost"}))
      ->type_name("WHAT");
  hot.app->add_option("--limit", hot.options->limit, "How many, up to 100 (default: 20)")
      ->check(CLI::Range(1, 100))
      ->type_name("N");
  AddAdminOptions(*hot.app, hot.options->ask);
  hot.Does(action, ListHot);
  const auto audit =
      Add<AuditOptions>(app, "audit", "List changes and failed authentications, newest first",
                        "tidegate audit --limit 20");
  audit.app->add_option("--limit", audit.options->limit, "How many, up to 1000 (default: 100)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  AddAdminOptions(*audit.app, audit.options->ask);
  audit.Does(action, ListAudit);
  const auto status =
      Add<AskOptions>(app, "status", "Say how a server is, since its start",
                      "tidegate status\n"
                      "  tidegate status --admin https://node7.example.com:9180 --ca-file ca.pem");
  AddAdminOptions(*status.app, *status.options);
  status.Does(action, Status);
}

void AddReload(CLI::App& app, Action& action) {
  const auto command = Add<AskOptions>(
      app, "reload", "Have a server read its configuration again, and say how that went",
      "tidegate reload");
  // Names of new upstreams may have to be looked up.
  command.options->timeout = std::chrono::seconds{30};
  AddAdminOptions(*command.app, *command.options);
  command.app->get_option("--timeout")
      ->description("How long to wait until it has been read (default: 30s)");
  command.Does(action, Reload);
}

void AddTop(CLI::App& app, Action& action) {
  const auto command =
      Add<TopOptions>(app, "top", "Watch a server: rates, rules and hot keys, live",
                      "tidegate top --every 500ms\n  tidegate top --once");
  AddParsed(*command.app, "--every", command.options->every, ReadEvery,
            "How often to refresh (default: 1s)", "DURATION");
  command.app->add_flag("--once", command.options->once,
                        "One view as plain text, also in a terminal");
  AddAdminOptions(*command.app, command.options->ask);
  command.app->get_option("--json")->description("Print one JSON object per refresh");
  command.Does(action, Top);
}

}  // namespace

void AddAdminCommands(CLI::App& app, Action& action) {
  AddTop(app, action);
  AddListings(app, action);
  AddExplain(app, action);
  AddInspect(app, action);
  AddChanges(app, action);
  AddReload(app, action);
}

}  // namespace tidegate::cli
