// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.hpp"

#include <malloc.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/demo_upstream.hpp"
#include "cli/descriptors.hpp"
#include "cli/exit.hpp"
#include "cli/server_address.hpp"
#include "rules/duration.hpp"
#include "server/config_reloader.hpp"
#include "server/process_hardening.hpp"
#include "server/server.hpp"
#include "telemetry/log.hpp"

namespace tidegate::cli {
namespace {

void PrintDemo(const Server& server) {
  const std::string gateway = "http://" + server.gateway().Text();
  const std::string api = "http://" + server.api().Text();
  // Commands find the usual ports by themselves.
  const std::string of_admin =
      server.admin().port() == kAdminPort ? "" : " --admin " + server.admin().Text();
  const std::string of_api =
      server.api().port() == kApiPort ? "" : " --server " + server.api().Text();
  std::cout <<
      R"(
Try it, in another terminal. The gateway stands in front of a small server that tells what it was
asked. Five requests pass, and one more every two seconds:

  for i in 1 2 3 4 5 6; do
    curl -si )"
            << gateway << R"(/demo/hello | grep -E '^(HTTP|RateLimit:|Retry-After)'
  done

    five times  HTTP/1.1 200 OK   RateLimit: "demo";r=4;t=2  ... down to r=0
    then        HTTP/1.1 429 Too Many Requests   Retry-After: 2

Two at a time; each takes three seconds, so the third is refused at once:

  for i in 1 2 3; do curl -s -o /dev/null -w '%{http_code}\n' )"
            << gateway << R"(/jobs & done; wait

    prints      429, then 200 and 200

A cost that only the answer tells (350 of 1000 tokens a minute): three pass, then 429:

  for i in 1 2 3 4; do curl -s -o /dev/null -w '%{http_code}\n' )"
            << gateway << R"(/chat; done

Without the gateway, ask for decisions. It is the bucket of -H 'x-api-key: alice' above:

  curl -s --json '{"rule":"demo","identity":"alice"}' )"
            << api << R"(/v1/decide

    tells       {"allowed":true,"rule":"demo","limit":5,"remaining":4, ...

Bring your own quota, without any rule:

  curl -s --json '{"key":"job-42","limit":"10/m"}' )"
            << api << R"(/v1/decide

The same with any Redis client, on a port of its own:

  redis-cli -p )"
            << server.resp().port() << R"( TG.DECIDE demo alice
  redis-cli -p )"
            << server.resp().port() << R"( CL.THROTTLE job-42 15 30 60

    print       0 (it passes), the limit, what remains, the time to wait (-1: none), until full

Watch it in another terminal, ask why, refuse somebody for a minute, and see that it holds:

  tidegate top)"
            << of_admin << R"(         (here: build/release/tidegate, if ./dev built it)
  tidegate explain --path /demo/hello --client-ip 127.0.0.1)"
            << of_admin << R"(
  tidegate ban demo alice --for 1m --reason "to try it")"
            << of_admin << R"(
  tidegate decide demo alice)"
            << of_api << R"(

All endpoints: )"
            << api << "/openapi.json   Metrics: http://" << server.admin().Text()
            << "/metrics\nBelow: one line of JSON for each request that passes the gateway.\n\n"
            << std::flush;
}

Log::Format FormatOf(Config::Log::Format format) noexcept {
  return format == Config::Log::Format::kJson ? Log::Format::kJson : Log::Format::kText;
}

void ConfigureLog(const ServeOptions& options, const Config& config) {
  Log::Configure(FormatOf(options.log_format.value_or(config.log.format)),
                 static_cast<Log::Level>(config.log.level));
}

/// Where the demo's upstream is, as the configuration's environment tells it.
std::string demo_upstream;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

ConfigReading ReadDemo(const DemoUpstream& upstream) {
  demo_upstream = upstream.url();
  return ParseConfig(DemoConfig(), ".", [](const std::string& name) -> std::optional<std::string> {
    if (name == "TIDEGATE_DEMO_UPSTREAM") return demo_upstream;
    return ProcessEnvironment(name);
  });
}

/// Returns unused memory to the system when many connections have ended; the C library would keep
/// it for later.
class MemoryTrimmer {
 public:
  explicit MemoryTrimmer(boost::asio::io_context& context) : context_(context), timer_(context) {
    // malloc_trim does not free the end of a thread's heap; free() does, if it is longer than this.
    // Otherwise the C library would choose up to 64 MiB.
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
  }

  /// The server must outlive the run of the context.
  void Use(Server& server) { server_ = &server; }

  /// Trims a little later, so that connections that linger have ended too. Thread-safe.
  void Schedule() {
    boost::asio::post(context_, [this] {
      if (std::exchange(scheduled_, true)) {
        again_ = true;
      } else {
        Arm();
      }
    });
  }

 private:
  static constexpr std::chrono::milliseconds kDelay{1500};

  void Arm() {
    timer_.expires_after(kDelay);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      Trim();
      scheduled_ = std::exchange(again_, false);
      if (scheduled_) Arm();
    });
  }
  void Trim() {
    server_->TrimMemory(
        [this] { boost::asio::post(context_, [] { (void)malloc_trim(1u << 20); }); });
  }

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  Server* server_ = nullptr;  ///< Set before the server starts.
  bool scheduled_ = false;
  bool again_ = false;  ///< More connections have ended since the timer was armed.
};

/// Handles signals and reloads, and ends the process.
class Control {
 public:
  /// `seen`: the files that the configuration was read from.
  Control(boost::asio::io_context& context, Server& server, const ServeOptions& options,
          std::vector<FileSeen> seen, const Config::Limits& limits)
      : context_(context),
        server_(server),
        drain_delay_(limits.drain_delay),
        drain_timeout_(limits.drain_timeout),
        stop_(context_, SIGTERM, SIGINT),
        reload_(context_, SIGHUP),
        timer_(context_),
        reloader_(
            context_, server,
            {.file = options.config,
             .on_applied = [&options](const Config& config) { ConfigureLog(options, config); }},
            std::move(seen)) {}

  void Run() {
    WaitForStop();
    WaitForReload();
    context_.run();
  }

 private:
  void WaitForStop() {
    stop_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (!error) Stop(signal);
    });
  }
  void WaitForReload() {
    reload_.async_wait([this](const boost::system::error_code& error, int) {
      if (error) return;
      (void)reloader_.Reload("SIGHUP");
      WaitForReload();
    });
  }

  void Stop(int signal) {
    if (std::exchange(stopping_, true)) {
      Log::Warning("stopping at once: the signal came twice");
      return context_.stop();
    }
    reloader_.Stop();
    Log::Info(signal == SIGTERM ? "SIGTERM: finishing requests in progress"
                                : "SIGINT: finishing requests in progress",
              {{"at_most", FormatDuration(drain_timeout_)}});
    WaitForStop();
    // Load balancers that ask /readyz get the time to choose another node.
    server_.NotReady();
    timer_.expires_after(drain_delay_);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) Drain();
    });
  }

  void Drain() {
    timer_.expires_after(drain_timeout_);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      Log::Warning("drain timeout: closing the remaining connections");
      context_.stop();
    });
    server_.Drain([this] { boost::asio::post(context_, [this] { context_.stop(); }); });
  }

  boost::asio::io_context& context_;
  Server& server_;
  const std::chrono::microseconds drain_delay_;
  const std::chrono::microseconds drain_timeout_;
  boost::asio::signal_set stop_;
  boost::asio::signal_set reload_;
  boost::asio::steady_timer timer_;
  ConfigReloader reloader_;
  bool stopping_ = false;
};

std::string UrlOf(std::string_view scheme, const ListenSpec& spec, const net::Endpoint& endpoint) {
  return std::string(scheme) + (spec.tls ? "s://" : "://") + endpoint.Text();
}

void LogStart(const Server& server, const Config& config) {
  Log::Info("tidegate " TIDEGATE_VERSION " is up",
            {{"threads", std::to_string(server.threads())},
             {"store", config.store.redis ? config.store.redis->Shown() : "memory"},
             {"max_keys", std::to_string(config.store.max_keys)},
             {"rules", std::to_string(server.rule_count())}});
  if (!config.listen.api.off()) {
    Log::Info("HTTP API", {{"on", UrlOf("http", config.listen.api, server.api())}});
  }
  if (!config.listen.resp.off()) {
    Log::Info("Redis protocol", {{"on", UrlOf("redis", config.listen.resp, server.resp())}});
  }
  if (!config.listen.gateway.off()) {
    Log::Info("gateway", {{"on", UrlOf("http", config.listen.gateway, server.gateway())},
                          {"routes", std::to_string(config.routes.size())},
                          {"upstreams", std::to_string(config.upstreams.size())}});
  }
  if (!config.listen.admin.off()) {
    Log::Info("admin: /healthz /readyz /metrics",
              {{"on", UrlOf("http", config.listen.admin, server.admin())}});
  }
}

/// Returns `configured` with the value of the variable TIDEGATE_SECCOMP, if it is set, in place of
/// `process.seccomp`; nothing, with an error in the log, if that is not a value of it.
std::optional<Config::Process> WithSeccompVariable(const Config::Process& configured) {
  const auto word = ProcessEnvironment("TIDEGATE_SECCOMP");
  if (!word || word->empty()) return configured;
  const auto mode = SeccompOf(*word);
  if (!mode) {
    Log::Error("invalid environment variable TIDEGATE_SECCOMP: should be off, log, deny or kill",
               {{"value", *word}});
    return std::nullopt;
  }
  Config::Process process = configured;
  process.seccomp = *mode;
  return process;
}

/// Warns about files that a reload and a log rotation could not open any more.
void WarnOfLostFiles(const Config& config, const std::vector<FileSeen>& seen) {
  const std::string user = config.process.user ? config.process.user->text
                           : RunsAsRoot()      ? "root"
                                               : "unchanged";
  for (const std::string& file : UnreadableFiles(seen)) {
    Log::Warning(
        "the process dropped its privileges and cannot read a file of its configuration "
        "again: a reload will fail; let the user read it",
        {{"file", file}, {"user", user}});
  }
  const std::string& log = config.access_log.path;
  const bool is_file = log != "off" && log != "stdout" && log != "stderr";
  if (!config.listen.gateway.off() && is_file && !CanOpenForAppending(log)) {
    Log::Warning(
        "the process dropped its privileges and cannot open the access log again: it will "
        "not follow log rotation; let the user write the file and its folder",
        {{"file", log}, {"user", user}});
  }
}

/// Logs the ports of the demo that are not the usual ones.
void LogMoved(const Server& server, const std::vector<MovedListener>& moved) {
  for (const MovedListener& one : moved) {
    Log::Info(
        "the default port of a demo listener is taken; using a free port (choose one with the "
        "option)",
        {{"listener", one.listener},
         {"taken", one.taken},
         {"uses", server.group(one.id).endpoint().Text()},
         {"option", one.option}});
  }
}

/// Reports that the process runs as root. It has no capabilities left, so a server that only this
/// machine reaches needs no warning.
void ReportRoot(const Server& server) {
  if (!RunsAsRoot()) return;
  constexpr std::string_view kMessage =
      "the process runs as root: set `process.user` to a user without privileges, or start it as "
      "one";
  const auto is_public = [&](ListenerId id) {
    return !server.group(id).off() && !server.group(id).endpoint().IsLoopback();
  };
  if (is_public(ListenerId::kApi) || is_public(ListenerId::kAdmin) ||
      is_public(ListenerId::kGateway) || is_public(ListenerId::kResp)) {
    Log::Warning(kMessage);
  } else {
    Log::Info(kMessage);
  }
}

}  // namespace

int Serve(const ServeOptions& options) {
  ForbidNewPrivileges();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // Until there is something to reload.
  // What is wrong with the configuration is told in that format too.
  if (options.log_format) Log::Configure(FormatOf(*options.log_format), Log::Level::kInfo);
  std::optional<DemoUpstream> upstream;
  if (options.config.empty()) upstream.emplace();
  ConfigReading reading = upstream ? ReadDemo(*upstream) : LoadConfig(options.config);
  const std::string file = options.config.empty() ? "demo" : options.config;
  if (reading.config) ConfigureLog(options, *reading.config);
  if (!reading.config) {
    LogProblems(reading.problems, file);
    return kUsage;
  }
  const auto process = WithSeccompVariable(reading.config->process);
  if (!process) return kUsage;
  std::vector<MovedListener> moved;
  if (options.demo) {
    auto chosen = ChooseDemoPorts(options.demo_ports, reading.config->listen);
    if (!chosen) {
      Log::Error(chosen.error().message);
      return chosen.error().code == ErrorCode::kBadConfig ? kUsage : kRuntime;
    }
    moved = *std::move(chosen);
  }
  const std::uint64_t descriptors = RaiseDescriptors();
  // Nobody tries the demo with so many connections.
  if (!options.demo) ReportFewDescriptors(descriptors, *reading.config);
  boost::asio::io_context context;
  MemoryTrimmer trimmer(context);
  auto server = Server::Make(*reading.config,
                             {.threads = options.threads,
                              .clock = nullptr,
                              .version = TIDEGATE_VERSION,
                              .descriptors = descriptors,
                              .on_subsided = [&trimmer] { trimmer.Schedule(); }},
                             reading.problems);
  if (!options.demo) LogProblems(reading.problems, file);
  if (!server) {
    Log::Error(server.error().message);
    return server.error().code == ErrorCode::kBadConfig ? kUsage : kRuntime;
  }
  trimmer.Use(**server);
  // Before the threads: they inherit how signals are taken.
  const std::vector<FileSeen> files = reading.files;
  Control control(context, **server, options, std::move(reading.files), reading.config->limits);
  if (auto hardened = HardenProcess(*process); !hardened) {
    Log::Error(hardened.error().message);
    return kUsage;
  }
  if (upstream) upstream->Start();
  (*server)->Start();
  LogStart(**server, *reading.config);
  LogMoved(**server, moved);
  WarnOfLostFiles(*reading.config, files);
  if (!options.demo) ReportRoot(**server);
  if (options.demo) PrintDemo(**server);
  control.Run();
  (*server)->Stop();
  Log::Info("stopped");
  return kOk;
}

}  // namespace tidegate::cli
