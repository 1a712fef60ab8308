// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "child.hpp"

namespace tidegate::bench {

/// A reverse proxy under measurement: one process with one thread, keep-alive on both sides. It
/// checks a limit, which is never reached, before it forwards a request.
struct Proxy {
  std::string name;
  int port = 0;
  int admin_port = 0;  ///< Tidegate's; 0: none.
  std::unique_ptr<Child> process;
};

enum class AccessLog : std::uint8_t { kOff, kFile };
/// What the proxies count by: client addresses, or values of the X-Api-Key header.
enum class LimitPer : std::uint8_t { kAddress, kApiKey };

/// What all proxies of a row have in common.
struct ProxySite {
  std::string tidegate;          ///< The binary.
  std::filesystem::path folder;  ///< For configurations and logs.
  int upstream_port = 0;
  int core = 0;
  AccessLog log = AccessLog::kOff;
  LimitPer per = LimitPer::kAddress;
};

/// Tidegate's gateway with one token bucket; it counts in Redis where a URL is given.
Proxy StartTidegate(const ProxySite& site, const std::string& redis_url = {});
/// nginx: `limit_req` and `proxy_pass`.
Proxy StartNginx(const ProxySite& site);
/// nginx with its Lua module: the usual script, of which this is the SHA-1, once per request on a
/// pooled connection to the Redis on this port, and `proxy_pass`.
Proxy StartNginxLua(const ProxySite& site, int redis_port, const std::string& script_sha);
/// HAProxy: a stick table that counts requests per address. It logs nothing.
Proxy StartHaproxy(const ProxySite& site);

}  // namespace tidegate::bench
