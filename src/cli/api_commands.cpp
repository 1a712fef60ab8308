// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/bench.hpp"
#include "cli/command_line.hpp"
#include "cli/decide.hpp"
#include "core/refuse.hpp"
#include "rules/limit_text.hpp"

namespace tidegate::cli {
namespace {

/// `20000/s`, or another period; a bare number is a second's.
Result<double> ReadRate(const std::string& text) {
  if (text == "0" || text.starts_with("0/")) {
    return Refuse(ErrorCode::kBadQuota,
                  text + " asks nothing: the rate is at least 1, as in 100/s");
  }
  const auto limit = LimitText::Parse(text.find('/') == std::string::npos ? text + "/s" : text);
  if (!limit) return std::unexpected(limit.error());
  return static_cast<double>(limit->count) / std::chrono::duration<double>(limit->period).count();
}

Result<Micros> ReadLoadTime(const std::string& text) {
  return ReadWithin(text, std::chrono::milliseconds{10}, std::chrono::hours{24},
                    "load for between 10ms and 24h");
}

void AddServer(CLI::App& app, AskOptions& options, const std::string& help) {
  AddParsed(app, "--server", options.server, ReadNotEmpty,
            help + " (default: the environment's TIDEGATE_SERVER, else 127.0.0.1:8081)",
            "HOST:PORT");
  AddAskOptions(app, options);
}

void AddDecide(CLI::App& app, Action& action) {
  CLI::App& decide = *app.add_subcommand("decide", "Ask a running server for one decision");
  const auto options = std::make_shared<DecideOptions>();
  decide.add_option("rule", options->rule, "The rule's id")->required()->type_name("RULE");
  decide.add_option("identity", options->identity, "Who is asking, as the rule counts")
      ->required()
      ->type_name("IDENTITY");
  AddParsed(decide, "--cost", options->cost, ReadCost, "What it costs (default: as the rule says)",
            "N");
  decide.add_flag("--peek", options->peek, "Only look: charge nothing");
  AddServer(decide, options->ask, "Where its API listens; over TLS, https://HOST:PORT");
  AddTlsOptions(decide, options->ask.tls);
  decide.footer(
      "Exits with 0 if allowed, 1 if denied, 2 if the question makes no sense, 3 without an "
      "answer.\n"
      "\n"
      "Examples: at most so many mails as the rule allows; the same over TLS\n"
      "  tidegate decide mails alice && send-mail\n"
      "  tidegate decide mails alice --server https://limits.example.com:8081 && send-mail");
  decide.callback(
      [&action, options] { action = [options] { return Decide(*options, StandardConsole()); }; });
}

void AddBench(CLI::App& app, Action& action) {
  CLI::App& bench = *app.add_subcommand("bench", "Load a running server, and say what came of it");
  const auto options = std::make_shared<BenchOptions>();
  bench.add_option("--rule", options->rule, "The rule's id")->required()->type_name("RULE");
  bench
      .add_option("--identities", options->identities,
                  "How many ask: bench-0, bench-1, ... (default: 1000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->type_name("N");
  bench
      .add_option("--zipf", options->zipf,
                  "Few of them ask most: the k-th in proportion to 1/k^S (default: all alike)")
      ->check(CLI::Range(0.0, 10.0))
      ->type_name("S");
  bench.add_flag("--addresses", options->addresses,
                 "They are 10.0.0.1, 10.0.0.2, ...: for rules that count by client_ip");
  bench.add_option("--connections", options->connections, "Kept open (default: 16)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("N");
  bench.add_option("--threads", options->threads, "That share them (default: 1)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  AddParsed(bench, "--for", options->lasting, ReadLoadTime, "How long (default: 5s)", "DURATION");
  AddParsed(bench, "--rate", options->rate, ReadRate,
            "So many, rather than one for each answer; latencies count from when each was due",
            "N/s");
  AddParsed(bench, "--resp", options->resp, ReadNotEmpty,
            "Send TG.DECIDE to the RESP frontend, without TLS, instead of the API", "HOST:PORT");
  bench
      .add_option("--pipeline", options->pipeline,
                  "Questions under way per connection, with --resp (default: 1)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("N");
  AddServer(bench, options->ask, "Where its API listens, without TLS");
  bench.get_option("--json")->description("Print the report as JSON");
  bench.footer(
      "It charges the rule's keys for real: take a rule, or a server, that nobody else needs.\n"
      "Ctrl-C ends it early. Exits with 0, with 2 if the server refuses such questions, with 3\n"
      "without any answer.\n"
      "\n"
      "Examples:\n"
      "  tidegate bench --rule per-key --identities 100000 --zipf 1.1 --connections 64 --for 10s\n"
      "  tidegate bench --rule per-key --rate 5000/s\n"
      "  tidegate bench --rule per-key --resp 127.0.0.1:6380 --pipeline 32");
  bench.callback(
      [&action, options] { action = [options] { return Bench(*options, StandardConsole()); }; });
}

}  // namespace

void AddApiCommands(CLI::App& app, Action& action) {
  AddDecide(app, action);
  AddBench(app, action);
}

}  // namespace tidegate::cli
