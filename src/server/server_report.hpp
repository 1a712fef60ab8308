// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace tidegate {

class Server;

// Reports of the admin API about a server. All must be called on the first reactor's thread.

/// Returns the metrics in the Prometheus text format.
[[nodiscard]] std::string MetricsText(const Server& server);
/// Returns the state of the server as JSON.
[[nodiscard]] std::string StatusJson(const Server& server);
/// Returns the rules and their counts as JSON.
[[nodiscard]] std::string RulesJson(const Server& server);
/// Returns the hottest keys as JSON, at most `most` of each kind.
[[nodiscard]] std::string HotJson(const Server& server, std::size_t most);

}  // namespace tidegate
