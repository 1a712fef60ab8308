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
  int admin_port = 0;  ///< Port of Tidegate's admin listener; 0: not a Tidegate.
  std::unique_ptr<Child> process;
};

enum class AccessLog : std::uint8_t { kOff, kFile };
/// What the proxies count requests by: client addresses, or values of the X-Api-Key header.
enum class LimitPer : std::uint8_t { kAddress, kApiKey };

/// Settings that all proxies of a row share.
struct ProxySite {
  std::string tidegate;          ///< Path of the tidegate binary.
  std::filesystem::path folder;  ///< Folder for configurations and logs.
  int upstream_port = 0;
  int core = 0;
  AccessLog log = AccessLog::kOff;
  LimitPer per = LimitPer::kAddress;
};

/// Starts Tidegate's gateway with one token bucket. With `redis_url` it counts in Redis; empty: in
/// memory.
Proxy StartTidegate(const ProxySite& site, const std::string& redis_url = {});
/// Starts nginx with `limit_req` and `proxy_pass`.
Proxy StartNginx(const ProxySite& site);
/// Starts nginx with its Lua module: it calls the usual script with the SHA-1 `script_sha` once per
/// request, on a pooled connection to the Redis on `redis_port`, and then uses `proxy_pass`.
Proxy StartNginxLua(const ProxySite& site, int redis_port, const std::string& script_sha);
/// Starts HAProxy with a stick table that counts requests per address, and without a log.
Proxy StartHaproxy(const ProxySite& site);

}  // namespace tidegate::bench
