// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decision/snapshot.hpp"
#include "rules/config.hpp"
#include "tidegate/error.hpp"

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
  std::string listener;  ///< `gateway`
  std::string taken;     ///< `127.0.0.1:8080`
  std::string option;    ///< `--port`
};

/// Writes the ports of the demo into `listen`: those of the command line, and otherwise the usual
/// ones. A usual port that is taken is replaced by 0, so that the system chooses a free one; the
/// result lists these listeners. Fails if a port of the command line is taken or named twice.
[[nodiscard]] Result<std::vector<MovedListener>> ChooseDemoPorts(const DemoPorts& ports,
                                                                 Config::Listen& listen);

}  // namespace tidegate::cli
