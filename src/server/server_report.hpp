// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace tidegate {

class Server;

// What the admin API reports of a server. On the first reactor's thread.

/// The Prometheus text.
[[nodiscard]] std::string MetricsText(const Server& server);
/// JSON: the state of the server; its rules; the hottest keys.
[[nodiscard]] std::string StatusJson(const Server& server);
[[nodiscard]] std::string RulesJson(const Server& server);
[[nodiscard]] std::string HotJson(const Server& server, std::size_t most);

}  // namespace tidegate
