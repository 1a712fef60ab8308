// SPDX-License-Identifier: Apache-2.0
#include "cli/serve.hpp"

#include <malloc.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/units.hpp"
#include "cli/console.hpp"
#include "server/config_reloader.hpp"
#include "server/process_hardening.hpp"
#include "server/server.hpp"
#include "telemetry/log.hpp"

namespace tidegate::cli {
namespace {

void ConfigureLog(const ServeOptions& options, const Config& config) {
  Log::Configure(static_cast<Log::Format>(options.log_format.value_or(config.log.format)),
                 static_cast<Log::Level>(config.log.level));
}

/// The URL of the demo's upstream, which the demo's configuration reads from the environment.
std::string demo_upstream;

ConfigReading ReadDemo(const DemoUpstream& upstream) {
  demo_upstream = upstream.url();
  return ParseConfig(DemoConfig(), ".", [](const std::string& name) -> std::optional<std::string> {
    if (name == "TIDEGATE_DEMO_UPSTREAM") return demo_upstream;
    return ProcessEnvironment(name);
  });
}

/// Returns unused memory, which the C library keeps, to the system when connections have ended.
class MemoryTrimmer {
 public:
  explicit MemoryTrimmer(boost::asio::io_context& context) : context_(context), timer_(context) {
    // malloc_trim does not free the end of a thread's heap; free() does, if that end is longer than
    // this threshold. Otherwise the C library would choose a threshold of up to 64 MiB.
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
      server_->TrimMemory(
          [this] { boost::asio::post(context_, [] { (void)malloc_trim(1u << 20); }); });
      scheduled_ = std::exchange(again_, false);
      if (scheduled_) Arm();
    });
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
          std::vector<WatchedFile> seen, const Config::Limits& limits)
      : context_(context),
        server_(server),
        limits_(limits),
        signals_(context_, SIGTERM, SIGINT, SIGHUP),
        timer_(context_),
        reloader_(
            context_, server,
            {.file = options.config,
             .on_applied = [&options](const Config& config) { ConfigureLog(options, config); }},
            std::move(seen)) {}

  void Run() {
    WaitForSignal();
    context_.run();
  }

 private:
  void WaitForSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      if (signal != SIGHUP) Stop(signal);
      if (signal == SIGHUP) (void)reloader_.Reload("SIGHUP");
      WaitForSignal();
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
              {{"at_most", FormatDuration(limits_.drain_timeout)}});
    // Gives load balancers that poll /readyz the time to choose another node.
    server_.NotReady();
    timer_.expires_after(limits_.drain_delay);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) Drain();
    });
  }

  void Drain() {
    timer_.expires_after(limits_.drain_timeout);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      Log::Warning("drain timeout: closing the remaining connections");
      context_.stop();
    });
    server_.Drain([this] { boost::asio::post(context_, [this] { context_.stop(); }); });
  }

  boost::asio::io_context& context_;
  Server& server_;
  const Config::Limits limits_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  ConfigReloader reloader_;
  bool stopping_ = false;
};

std::string UrlOf(std::string_view scheme, const ListenSpec& spec, const net::Endpoint& endpoint) {
  return std::string(scheme) + (spec.tls ? "s://" : "://") + endpoint.Text();
}

void LogStart(const Server& server, const Config& config) {
  Log::Info("tidegate " TIDEGATE_VERSION " is up",
            {{"threads", std::to_string(server.workers().size())},
             {"store", config.store.redis ? config.store.redis->Shown() : "memory"},
             {"max_keys", std::to_string(config.store.max_keys)},
             {"rules", std::to_string(server.rule_count())}});
  const Config::Listen& listen = config.listen;
  if (!listen.api.off()) Log::Info("HTTP API", {{"on", UrlOf("http", listen.api, server.api())}});
  if (!listen.resp.off()) {
    Log::Info("Redis protocol", {{"on", UrlOf("redis", listen.resp, server.resp())}});
  }
  if (!listen.gateway.off()) {
    Log::Info("gateway", {{"on", UrlOf("http", listen.gateway, server.gateway())},
                          {"routes", std::to_string(config.routes.size())},
                          {"upstreams", std::to_string(config.upstreams.size())}});
  }
  if (!listen.admin.off()) {
    Log::Info("admin: /healthz /readyz /metrics",
              {{"on", UrlOf("http", listen.admin, server.admin())}});
  }
}

/// Returns `configured`, with the value of the environment variable TIDEGATE_SECCOMP, if it is set,
/// as `process.seccomp`. If that value is invalid, logs an error and returns nullopt.
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

/// Warns about files that a reload or a log rotation could no longer open.
void WarnOfLostFiles(const Config& config, const std::vector<WatchedFile>& seen) {
  const std::string user = config.process.user ? config.process.user->text
                           : RunsAsRoot()      ? "root"
                                               : "unchanged";
  for (const std::string& file : UnreadableFiles(seen)) {
    Log::Warning(
        "the process dropped its privileges and cannot read a file of its configuration "
        "again: a reload will fail; give the user read access to the file",
        {{"file", file}, {"user", user}});
  }
  const std::string& log = config.access_log.path;
  const bool is_file = log != "off" && log != "stdout" && log != "stderr";
  if (!config.listen.gateway.off() && is_file && !CanOpenForAppending(log)) {
    Log::Warning(
        "the process dropped its privileges and cannot open the access log again: log rotation "
        "will not work; give the user write access to the file and its folder",
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
  for (const ListenerId id :
       {ListenerId::kApi, ListenerId::kAdmin, ListenerId::kGateway, ListenerId::kResp}) {
    const ListenerGroup& group = server.group(id);
    if (!group.off() && !group.endpoint().IsLoopback()) return Log::Warning(kMessage);
  }
  Log::Info(kMessage);
}

}  // namespace

int Serve(const ServeOptions& options) {
  ForbidNewPrivileges();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // Ignored until the reloader handles it.
  // Problems of the configuration are logged in this format too.
  if (options.log_format)
    Log::Configure(static_cast<Log::Format>(*options.log_format), Log::Level::kInfo);
  const auto upstream = options.config.empty() ? DemoUpstream::Make() : nullptr;
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
  // The demo does not need so many connections.
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
  // Created before the threads, which inherit the handling of signals.
  const std::vector<WatchedFile> files = reading.files;
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
  if (options.demo) PrintDemoHelp(**server);
  control.Run();
  (*server)->Stop();
  Log::Info("stopped");
  return kOk;
}

}  // namespace tidegate::cli
