// SPDX-License-Identifier: Apache-2.0
#include "cli/bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <ostream>
#include <thread>
#include <vector>

#include "cli/bench_load.hpp"
#include "cli/exit.hpp"
#include "cli/human.hpp"
#include "cli/shown_text.hpp"
#include "cli/table.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;
using Clock = BenchLoad::Clock;

/// Set by Ctrl-C: what was measured so far is still told.
std::atomic<bool> interrupted{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

std::string NameOf(std::uint64_t n) { return "bench-" + std::to_string(n); }

/// 10.0.0.1 and on; as many as 10/8 has.
std::string AddressOf(std::uint64_t n) {
  const std::uint64_t host = (n + 1) & 0xFFFFFF;
  return "10." + std::to_string(host >> 16) + "." + std::to_string(host >> 8 & 255) + "." +
         std::to_string(host & 255);
}

struct Outcome {
  BenchTally tally;
  double seconds = 0;
};

std::vector<std::unique_ptr<BenchLoad>> LoadsOf(const BenchOptions& options,
                                                const AdminClient& client) {
  std::vector<std::unique_ptr<BenchLoad>> loads;
  const int threads = std::min(options.threads, options.connections);
  for (int i = 0; i < threads; ++i) {
    const int share = options.connections / threads + (i < options.connections % threads ? 1 : 0);
    const bool resp = !options.resp.empty();
    BenchLoad::Options load(Draw(static_cast<std::uint64_t>(options.identities), options.zipf,
                                 static_cast<std::uint64_t>(i) + 1));
    load.server = client.address();
    load.patience.timeout = options.ask.timeout;
    load.patience.option = resp ? "--resp" : "--server";
    load.make_wire = [&options, &client, resp] {
      return resp ? MakeRespWire(options.rule, client.token())
                  : MakeHttpWire(client.address(), options.rule, client.token());
    };
    load.identity = options.addresses ? AddressOf : NameOf;
    load.connections = share;
    load.pipeline = resp ? options.pipeline : 1;
    load.rate = options.rate * share / options.connections;
    loads.push_back(std::make_unique<BenchLoad>(std::move(load), interrupted));
  }
  return loads;
}

void ShowProgress(const std::vector<std::unique_ptr<BenchLoad>>& loads, const Micros lasting,
                  Clock::time_point start, const std::atomic<int>& running, std::ostream& err) {
  std::uint64_t before = 0;
  for (auto next = start + std::chrono::seconds{1}; running > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    if (Clock::now() < next) continue;
    std::uint64_t now = 0;
    for (const auto& load : loads) now += load->answered();
    const auto passed = std::chrono::floor<std::chrono::seconds>(next - start);
    err << "\r\x1b[K" << passed.count() << " s of "
        << Span(std::chrono::floor<std::chrono::milliseconds>(lasting)) << ": "
        << Rate(static_cast<double>(now - before)) << " decisions/s" << std::flush;
    before = now;
    next += std::chrono::seconds{1};
  }
  err << "\r\x1b[K" << std::flush;
}

Outcome Run(const BenchOptions& options, const AdminClient& client, const Console& console) {
  const auto loads = LoadsOf(options, client);
  interrupted = false;
  const auto before = std::signal(SIGINT, [](int) { interrupted = true; });
  std::atomic<int> running{static_cast<int>(loads.size())};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  threads.reserve(loads.size());
  for (const auto& load : loads) {
    threads.emplace_back([&running, &load, end = start + options.lasting] {
      load->Run(end);
      --running;
    });
  }
  if (isatty(STDERR_FILENO) != 0) ShowProgress(loads, options.lasting, start, running, console.err);
  for (std::thread& thread : threads) thread.join();
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const auto& load : loads) outcome.tally.Merge(load->tally());
  std::signal(SIGINT, before);
  return outcome;
}

constexpr std::pair<std::string_view, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

double SecondsOf(LatencyRecord::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void PrintJson(const Outcome& outcome, const Console& console) {
  const BenchTally& tally = outcome.tally;
  json::object statuses;
  for (const auto& [status, count] : tally.statuses) statuses[std::to_string(status)] = count;
  json::object sources;
  for (const auto& [decided_by, count] : tally.sources) sources[decided_by] = count;
  json::object latency;
  for (const auto& [name, q] : kQuantiles) {
    latency[name] = std::llround(SecondsOf(tally.latency.Quantile(q)) * 1e6);
  }
  json::object report{
      {"elapsed_ms", std::llround(outcome.seconds * 1e3)},
      {"decisions", tally.decisions()},
      {"decisions_per_s", std::llround(static_cast<double>(tally.decisions()) / outcome.seconds)},
      {"allowed", tally.allowed},
      {"denied", tally.denied},
      {"statuses", std::move(statuses)},
      {"decided_by", std::move(sources)},
      {"errors", tally.errors},
      {"latency_us", std::move(latency)}};
  if (!tally.trouble.empty()) report["error"] = tally.trouble;
  console.out << ShownJson(json::serialize(report)) << '\n';
}

void PrintBench(const BenchOptions& options, const AdminClient& client, const Outcome& outcome,
                const Console& console) {
  const BenchTally& tally = outcome.tally;
  const auto decisions = static_cast<double>(tally.decisions());
  const auto count = [](std::uint64_t n) { return Count(static_cast<std::int64_t>(n)); };
  console.out << (options.resp.empty() ? "POST /v1/decide" : "TG.DECIDE") << " at "
              << client.address().Text() << ", rule " << Shown(options.rule) << ", "
              << (options.identities == 1 ? "1 identity"
                                          : Count(options.identities) + " identities")
              << ", " << Plural(options.connections, "connection");
  if (!options.resp.empty() && options.pipeline > 1) {
    console.out << ", " << Count(options.pipeline) << " in a pipeline";
  }
  console.out << ", for " << Seconds(outcome.seconds) << "\n\n";
  Table facts({{""}, {"", Align::kRight}, {""}});
  facts.Add({"decisions", count(tally.decisions()), Rate(decisions / outcome.seconds) + "/s"});
  facts.Add(
      {"  allowed", count(tally.allowed), Share(static_cast<double>(tally.allowed), decisions)});
  facts.Add({"  denied", count(tally.denied), Share(static_cast<double>(tally.denied), decisions)});
  for (const auto& [status, n] : tally.statuses) {
    facts.Add({"  status " + std::to_string(status), count(n)});
  }
  for (const auto& [decided_by, n] : tally.sources)
    facts.Add({"  decided by " + decided_by, count(n)});
  facts.Add({"errors", Cell(count(tally.errors), tally.errors > 0 ? Ink::kBad : Ink::kPlain),
             tally.trouble});
  facts.Print(console);
  console.out << "latency  ";
  for (const auto& [name, q] : kQuantiles) {
    console.out << "  " << name << " " << Seconds(SecondsOf(tally.latency.Quantile(q)));
  }
  console.out << '\n';
}

}  // namespace

int Bench(const BenchOptions& options, const Console& console) {
  const bool resp = !options.resp.empty();
  AskOptions ask = options.ask;
  if (resp) ask.server = options.resp;
  const auto client =
      AdminClient::Make(ask, resp ? kRespPort : kApiPort, resp ? "--resp" : "--server");
  if (!client) return Tell("bench", client.error(), false, console);
  if (client->address().tls) {
    return Tell("bench",
                {kUsage, std::string(resp ? "--resp" : "--server") +
                             ": bench does not speak TLS: name a listener without it, on loopback "
                             "for example, or this end of a tunnel"},
                false, console);
  }
  Warn("bench", *client, console);
  if (!resp && options.pipeline != 1) {
    return Tell("bench", {kUsage, "--pipeline is for --resp: over HTTP, take more --connections"},
                false, console);
  }
  const Outcome outcome = Run(options, *client, console);
  const BenchTally& tally = outcome.tally;
  if (!tally.mistake.empty()) {
    const bool wants_addresses = !options.addresses && tally.mistake.contains("client_ip");
    return Tell("bench",
                {kUsage, tally.mistake +
                             (wants_addresses ? "; with --addresses, they ask by addresses" : "")},
                false, console);
  }
  if (tally.decisions() == 0) {
    const std::string why = tally.trouble.empty() ? "there was no decision" : tally.trouble;
    return Tell("bench", {kNoAnswer, Shown(why)}, false, console);
  }
  if (options.ask.json) {
    PrintJson(outcome, console);
  } else {
    PrintBench(options, *client, outcome, console);
  }
  return kOk;
}

}  // namespace tidegate::cli
