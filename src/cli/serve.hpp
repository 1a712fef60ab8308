// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "decision/snapshot.hpp"
#include "tidegate/error.hpp"

namespace tidegate {
class Server;
}  // namespace tidegate

namespace tidegate::cli {

/// The ports that the command line gives to the listeners of the demo; 0 means any free port.
struct DemoPorts {
  std::optional<std::uint16_t> gateway = {};  ///< `--port`
  std::optional<std::uint16_t> api = {};      ///< `--api-port`
  std::optional<std::uint16_t> resp = {};     ///< `--resp-port`
  std::optional<std::uint16_t> admin = {};    ///< `--admin-port`
};

/// A listener of the demo that cannot have its usual port.
struct MovedListener {
  ListenerId id = ListenerId::kGateway;
  std::string listener;  ///< Its name, such as `gateway`.
  std::string taken;     ///< The taken address, such as `127.0.0.1:8080`.
  std::string option;    ///< The option that sets its port, such as `--port`.
};

/// Writes the ports of the demo into `listen`: those of the command line, and otherwise the usual
/// ones. A usual port that is taken is replaced by 0, so that the system chooses a free one; the
/// result lists these listeners. Fails if a port of the command line is taken or named twice.
[[nodiscard]] Result<std::vector<MovedListener>> ChooseDemoPorts(const DemoPorts& ports,
                                                                 Config::Listen& listen);

struct ServeOptions {
  std::string config;  ///< The configuration file; empty with `demo`.
  bool demo = false;
  DemoPorts demo_ports = {};
  int threads = 0;  ///< 0: one per core.
  std::optional<Config::Log::Format> log_format;
};

/// Runs `tidegate serve` until SIGTERM or SIGINT. Returns an exit code.
[[nodiscard]] int Serve(const ServeOptions& options);

/// The upstream of the demo's gateway: a small server in this process, on a free loopback port.
/// Answers with the request that it received; delays /jobs, and reports a cost for /chat.
class DemoUpstream {
 public:
  [[nodiscard]] static std::unique_ptr<DemoUpstream> Make();
  virtual ~DemoUpstream() = default;

  /// Starts the upstream's thread. Connections wait until then.
  virtual void Start() = 0;
  [[nodiscard]] virtual std::string url() const = 0;
};

/// Returns the configuration of `--demo`: examples/demo.yaml.
[[nodiscard]] std::string_view DemoConfig() noexcept;

/// Prints commands with which to try a server that runs the demo.
void PrintDemoHelp(const Server& server);

}  // namespace tidegate::cli
