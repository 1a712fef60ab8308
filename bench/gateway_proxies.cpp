// SPDX-License-Identifier: Apache-2.0
#include "gateway_proxies.hpp"

#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tidegate::bench {
namespace {

/// Returns `text` with each `@name@` replaced by its value.
std::string Fill(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    const std::string mark = "@" + name + "@";
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size()) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

/// Writes a configuration to a new file and returns its path.
std::string Write(const ProxySite& site, int port, const std::string& text) {
  const auto file = site.folder / ("proxy-" + std::to_string(port) + ".conf");
  std::ofstream(file) << text;
  return file.string();
}

void Start(Proxy& proxy, const ProxySite& site, std::vector<std::string> arguments) {
  proxy.process = std::make_unique<Child>(std::move(arguments), site.core);
  if (!WaitForPort(proxy.port)) throw std::runtime_error(proxy.name + " did not start");
}

bool ByKey(const ProxySite& site) { return site.per == LimitPer::kApiKey; }

constexpr const char* kTidegate = R"(
listen: { gateway: "127.0.0.1:@port@", api: "off", admin: "127.0.0.1:@admin@" }
access_log: "@log@"
@store@
rules: [ { id: limit, per: "@per@", algorithm: token_bucket, limit: 100000000/s } ]
routes: [ { match: { path: /** }, upstream: u } ]
upstreams: { u: { targets: [ "http://127.0.0.1:@upstream@" ], keep_alive: 1024 } }
)";

// nginx runs as one process, because the CPU time of exactly one process is measured.
constexpr const char* kNginx = R"(
daemon off; master_process off; worker_processes 1;
pid @folder@/nginx-@port@.pid; error_log /dev/null crit;
@modules@
events { worker_connections 12000; }
http {
  keepalive_requests 1000000000; keepalive_timeout 3600;
  client_body_temp_path @folder@; proxy_temp_path @folder@; fastcgi_temp_path @folder@;
  uwsgi_temp_path @folder@; scgi_temp_path @folder@;
  log_format json escape=json '{"time":"$time_iso8601","request_id":"$request_id",'
    '"client":"$remote_addr","method":"$request_method","host":"$host","path":"$uri",'
    '"status":$status,"limit":"$limit_req_status","upstream":"$upstream_addr",'
    '"upstream_s":"$upstream_response_time","total_s":$request_time,'
    '"bytes_in":$request_length,"bytes_out":$bytes_sent}';
  access_log @log@;
  limit_req_zone @per@ zone=limit:32m rate=1000000r/s;
  upstream u { server 127.0.0.1:@upstream@; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:@port@ backlog=4096;
    location / {
      @limit@
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_pass http://u;
    }
  }
}
)";

// Like Tidegate, the script checks the limit before nginx forwards the request. Errors must be
// visible in the benchmark, so they are not ignored.
constexpr const char* kLuaLimit = R"(
      access_by_lua_block {
        local redis = require("nginx.redis"):new()
        redis:set_timeout(1000)
        if not redis:connect("127.0.0.1", @redis@) then return ngx.exit(503) end
        local answer = redis:evalsha("@sha@", 1, "bl:tb:per-ip:{" .. ngx.var.remote_addr .. "}",
                                     100000000, 100000000, ngx.time(), 1)
        if not answer then return ngx.exit(503) end
        redis:set_keepalive(60000, 256)
        if answer[1] == 0 then return ngx.exit(429) end
      }
)";

constexpr const char* kHaproxy = R"(
global
  nbthread 1
  maxconn 8000
defaults
  mode http
  http-reuse always
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
frontend clients
  bind 127.0.0.1:@port@ backlog 4096
  stick-table type @type@ size 1m expire 1m store http_req_rate(1s)
  http-request track-sc0 @per@
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100000000 }
  default_backend upstream
backend upstream
  server u 127.0.0.1:@upstream@
)";

Proxy StartNginx(const ProxySite& site, std::string name, const std::string& modules,
                 const std::string& limit) {
  Proxy nginx{.name = std::move(name), .port = FreePort(), .process = nullptr};
  const std::string port = std::to_string(nginx.port);
  const std::string log =
      site.log == AccessLog::kOff
          ? "off"
          : (site.folder / ("access-" + port + ".log")).string() + " json buffer=64k flush=1s";
  const std::string file =
      Write(site, nginx.port,
            Fill(kNginx, {{"limit", limit},
                          {"per", ByKey(site) ? "$http_x_api_key" : "$binary_remote_addr"},
                          {"modules", modules},
                          {"log", log},
                          {"folder", site.folder.string()},
                          {"port", port},
                          {"upstream", std::to_string(site.upstream_port)}}));
  Start(nginx, site, {"nginx", "-e", "/dev/null", "-c", file});
  return nginx;
}

}  // namespace

Proxy StartTidegate(const ProxySite& site, const std::string& redis_url) {
  Proxy tidegate{.name = !redis_url.empty() ? "tidegate, the Redis store"
                         : ByKey(site)      ? "tidegate, a token bucket per API key"
                                            : "tidegate, a token bucket per address",
                 .port = FreePort(),
                 .admin_port = FreePort(),
                 .process = nullptr};
  const std::string port = std::to_string(tidegate.port);
  const std::string log =
      site.log == AccessLog::kOff ? "off" : (site.folder / ("access-" + port + ".log")).string();
  const std::string store =
      redis_url.empty() ? "" : "store: { url: \"" + redis_url + "\", on_failure: open }";
  const std::string file =
      Write(site, tidegate.port,
            Fill(kTidegate, {{"port", port},
                             {"admin", std::to_string(tidegate.admin_port)},
                             {"log", log},
                             {"per", ByKey(site) ? "header:x-api-key" : "client_ip"},
                             {"store", store},
                             {"upstream", std::to_string(site.upstream_port)}}));
  Start(tidegate, site, {site.tidegate, "serve", "--config", file, "--threads", "1"});
  return tidegate;
}

Proxy StartNginx(const ProxySite& site) {
  return StartNginx(site, "nginx, limit_req and proxy_pass", "",
                    "limit_req zone=limit burst=1000000 nodelay;");
}

Proxy StartNginxLua(const ProxySite& site, int redis_port, const std::string& script_sha) {
  return StartNginx(site, "nginx, Lua with an EVALSHA and proxy_pass",
                    "load_module /usr/lib/nginx/modules/ndk_http_module.so;\n"
                    "load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;",
                    Fill(kLuaLimit, {{"redis", std::to_string(redis_port)}, {"sha", script_sha}}));
}

Proxy StartHaproxy(const ProxySite& site) {
  Proxy haproxy{.name = "haproxy, a stick table", .port = FreePort(), .process = nullptr};
  const std::string file =
      Write(site, haproxy.port,
            Fill(kHaproxy, {{"port", std::to_string(haproxy.port)},
                            {"type", ByKey(site) ? "string len 32" : "ip"},
                            {"per", ByKey(site) ? "req.hdr(x-api-key)" : "src"},
                            {"upstream", std::to_string(site.upstream_port)}}));
  Start(haproxy, site, {"haproxy", "-db", "-f", file});
  return haproxy;
}

}  // namespace tidegate::bench
