// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ostream>
#include <thread>

#include "cli/bench_load.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;
using Clock = BenchLoad::Clock;

/// Set by Ctrl-C: the results so far are still printed.
std::atomic<bool> interrupted{false};

std::vector<std::unique_ptr<BenchLoad>> LoadsOf(const BenchOptions& options,
                                                const AdminClient& client) {
  std::vector<std::unique_ptr<BenchLoad>> loads;
  const int threads = std::min(options.threads, options.connections);
  for (int i = 0; i < threads; ++i) {
    const int share = options.connections / threads + (i < options.connections % threads ? 1 : 0);
    loads.push_back(std::make_unique<BenchLoad>(options, client, share,
                                                static_cast<std::uint64_t>(i) + 1, interrupted));
  }
  return loads;
}

void ShowProgress(const std::vector<std::unique_ptr<BenchLoad>>& loads, const Micros duration,
                  Clock::time_point start, const std::atomic<int>& running, std::ostream& err) {
  std::uint64_t before = 0;
  for (auto next = start + std::chrono::seconds{1}; running > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    if (Clock::now() < next) continue;
    std::uint64_t now = 0;
    for (const auto& load : loads) now += load->answered();
    const auto passed = std::chrono::floor<std::chrono::seconds>(next - start);
    err << "\r\x1b[K" << passed.count() << " s of "
        << Span(std::chrono::floor<std::chrono::milliseconds>(duration)) << ": "
        << Rate(static_cast<double>(now - before)) << " decisions/s" << std::flush;
    before = now;
    next += std::chrono::seconds{1};
  }
  err << "\r\x1b[K" << std::flush;
}

BenchResult Run(const BenchOptions& options, const AdminClient& client, const Console& console) {
  const auto loads = LoadsOf(options, client);
  interrupted = false;
  const auto before = std::signal(SIGINT, [](int) { interrupted = true; });
  std::atomic<int> running{static_cast<int>(loads.size())};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  threads.reserve(loads.size());
  for (const auto& load : loads) {
    threads.emplace_back([&running, &load, end = start + options.duration] {
      load->Run(end);
      --running;
    });
  }
  if (isatty(STDERR_FILENO) != 0)
    ShowProgress(loads, options.duration, start, running, console.err);
  for (std::thread& thread : threads) thread.join();
  BenchResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const auto& load : loads) result.Merge(load->result());
  std::signal(SIGINT, before);
  return result;
}

constexpr std::pair<std::string_view, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

double SecondsOf(LatencyRecord::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void PrintBenchJson(const BenchResult& result, const Console& console) {
  json::object statuses;
  for (const auto& [status, count] : result.statuses) statuses[std::to_string(status)] = count;
  json::object sources;
  for (const auto& [decided_by, count] : result.sources) sources[decided_by] = count;
  json::object latency;
  for (const auto& [name, q] : kQuantiles) {
    latency[name] = std::llround(SecondsOf(result.latency.Quantile(q)) * 1e6);
  }
  json::object report{
      {"elapsed_ms", std::llround(result.seconds * 1e3)},
      {"decisions", result.decisions()},
      {"decisions_per_s", std::llround(static_cast<double>(result.decisions()) / result.seconds)},
      {"allowed", result.allowed},
      {"denied", result.denied},
      {"statuses", std::move(statuses)},
      {"decided_by", std::move(sources)},
      {"errors", result.errors},
      {"latency_us", std::move(latency)}};
  if (!result.first_error.empty()) report["error"] = result.first_error;
  console.out << ShownJson(json::serialize(report)) << '\n';
}

void PrintBench(const BenchOptions& options, const AdminClient& client, const BenchResult& result,
                const Console& console) {
  const auto decisions = static_cast<double>(result.decisions());
  const auto count = [](std::uint64_t n) { return Count(static_cast<std::int64_t>(n)); };
  console.out << (options.resp.empty() ? "POST /v1/decide" : "TG.DECIDE") << " at "
              << client.address().Text() << ", rule " << Shown(options.rule) << ", "
              << (options.identities == 1 ? "1 identity"
                                          : Count(options.identities) + " identities")
              << ", " << Plural(options.connections, "connection");
  if (!options.resp.empty() && options.pipeline > 1) {
    console.out << ", " << Count(options.pipeline) << " in a pipeline";
  }
  console.out << ", for " << Seconds(result.seconds) << "\n\n";
  Table facts("|>|");
  facts.Add({"decisions", count(result.decisions()), Rate(decisions / result.seconds) + "/s"});
  facts.Add(
      {"  allowed", count(result.allowed), Share(static_cast<double>(result.allowed), decisions)});
  facts.Add(
      {"  denied", count(result.denied), Share(static_cast<double>(result.denied), decisions)});
  for (const auto& [status, n] : result.statuses) {
    facts.Add({"  status " + std::to_string(status), count(n)});
  }
  for (const auto& [decided_by, n] : result.sources)
    facts.Add({"  decided by " + decided_by, count(n)});
  facts.Add({"errors", Cell(count(result.errors), result.errors > 0 ? Style::kBad : Style::kPlain),
             result.first_error});
  facts.Print(console);
  console.out << "latency  ";
  for (const auto& [name, q] : kQuantiles) {
    console.out << "  " << name << " " << Seconds(SecondsOf(result.latency.Quantile(q)));
  }
  console.out << '\n';
}

}  // namespace

int Bench(const BenchOptions& options, const Console& console) {
  const bool resp = !options.resp.empty();
  const std::string option = resp ? "--resp" : "--server";
  const auto fail = [&](const CommandError& error) {
    return ReportError("bench", error, false, console);
  };
  ClientOptions server = options.client;
  if (resp) server.server = options.resp;
  const auto client = AdminClient::Make(server, resp ? kRespPort : kApiPort, option);
  if (!client) return fail(client.error());
  if (client->address().tls) {
    return fail({kUsage, option + ": bench does not support TLS: name a listener without TLS, on "
                                  "loopback for example, or the local end of a tunnel"});
  }
  WarnAboutToken("bench", *client, console);
  if (!resp && options.pipeline != 1) {
    return fail({kUsage, "--pipeline needs --resp: over HTTP, use more --connections"});
  }
  const BenchResult result = Run(options, *client, console);
  if (!result.fatal_error.empty()) {
    const bool wants_addresses = !options.addresses && result.fatal_error.contains("client_ip");
    return fail(
        {kUsage, result.fatal_error +
                     (wants_addresses ? "; use --addresses to send addresses as identities" : "")});
  }
  if (result.decisions() == 0) {
    return fail({kNoAnswer,
                 result.first_error.empty() ? "there was no decision" : Shown(result.first_error)});
  }
  if (options.client.json) {
    PrintBenchJson(result, console);
  } else {
    PrintBench(options, *client, result, console);
  }
  return kOk;
}

}  // namespace tidegate::cli
