// SPDX-License-Identifier: Apache-2.0
#include "gateway/variants/upstream_fleet.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "support/ports.hpp"

namespace tidegate::gateway_test {
namespace {

namespace fs = std::filesystem;

std::string At(int port) { return "127.0.0.1:" + std::to_string(port); }

void MustBeInstalled(const std::string& program) {
  if (!ProxyProcess::Installed(program)) {
    throw std::runtime_error(program + " is not installed; ./dev test installs it");
  }
}

/// Configuration of nginx: PORT_A serves files, PORT_B proxies requests unchanged, PORT_C proxies
/// with a URI part, which decodes the path; PORT_D is the server behind PORT_B and PORT_C.
constexpr std::string_view kNginx = R"(daemon off;
master_process off;
pid FOLDER/pid;
error_log stderr crit;
events { worker_connections 2000; }
http {
  access_log off;
  client_body_temp_path FOLDER/client_body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  default_type text/plain;
  map $request_filename $file {
    default other;
    ~/files/admin/ admin;
    ~/files/v1/login$ login;
  }
  map $request_method $login { default other; POST login; }
  server {
    listen 127.0.0.1:PORT_A;
    root FILES;
    index index.html;
    add_header X-Served $file always;
    location / { error_page 405 =200 $uri; }
  }
  server {
    listen 127.0.0.1:PORT_B;
    location / { proxy_pass http://127.0.0.1:PORT_D; }
  }
  server {
    listen 127.0.0.1:PORT_C;
    location / { proxy_pass http://127.0.0.1:PORT_D/; }
  }
  server {
    listen 127.0.0.1:PORT_D;
    location / { add_header X-Served other always; return 200 other; }
    location /admin/ { add_header X-Served admin always; return 200 admin; }
    location = /admin { add_header X-Served admin always; return 200 admin; }
    location = /v1/login { add_header X-Served $login always; return 200 login; }
  }
}
)";

}  // namespace

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

UpstreamFleet::UpstreamFleet() {
  MakeFiles();
  StartNginx();
  StartExpress();
  StartPython();
}

const Upstream& UpstreamFleet::Named(const std::string& name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const Upstream& upstream) { return upstream.name == name; });
  if (found == all_.end()) throw std::runtime_error("unknown upstream " + name);
  return *found;
}

void UpstreamFleet::MakeFiles() {
  const fs::path files = folder_ / "files";
  for (const char* const folder : {"admin", "v1"}) fs::create_directories(files / folder);
  for (const char* const file : {"admin/x", "admin/index.html", "v1/login", "free", "index.html"}) {
    std::ofstream(files / file) << file << "\n";
  }
}

void UpstreamFleet::StartNginx() {
  MustBeInstalled("nginx");
  std::string config = Replaced(std::string(kNginx), "FILES", (folder_ / "files").string());
  const int files = test::FreePort();
  config = Replaced(config, "PORT_A", std::to_string(files));
  all_.push_back({"files", files, {{"nginx files", "x-served"}}});
  const int as_it_is = test::FreePort();
  config = Replaced(config, "PORT_B", std::to_string(as_it_is));
  all_.push_back({"proxied", as_it_is, {{"nginx before nginx", "x-served"}}});
  const int decoding = test::FreePort();
  config = Replaced(config, "PORT_C", std::to_string(decoding));
  all_.push_back({"decoded", decoding, {{"nginx with a URI part before nginx", "x-served"}}});
  config = Replaced(config, "PORT_D", std::to_string(test::FreePort()));
  processes_.push_back(
      ProxyProcess::Other(files, {{"config", config}},
                          {"nginx", "-p", "FOLDER", "-e", "stderr", "-c", "FOLDER/config"}));
}

void UpstreamFleet::StartExpress() {
  MustBeInstalled("node");
  const fs::path here = fs::path(TIDEGATE_VARIANTS);
  if (!fs::exists(here / "node_modules" / "express")) {
    throw std::runtime_error(
        "Express is not installed: run `npm install` in tests/gateway/variants");
  }
  const int port = test::FreePort();
  processes_.push_back(ProxyProcess::Other(
      port, {},
      {"node", here / "upstreams" / "express_app.mjs", std::to_string(port), folder_ / "files"}));
  all_.push_back({"express", port, {{"Express", "x-served"}}});
}

void UpstreamFleet::StartPython() {
  MustBeInstalled("python3");
  const int port = test::FreePort();
  processes_.push_back(
      ProxyProcess::Other(port, {},
                          {"python3", fs::path(TIDEGATE_VARIANTS) / "upstreams" / "lenient_app.py",
                           std::to_string(port)}));
  all_.push_back({"python",
                  port,
                  {{"WSGI, exact", "x-served-exact"},
                   {"WSGI, lenient about the end", "x-served-lenient"},
                   {"WSGI, parameters cut as servlets do", "x-served-servlet"},
                   {"WSGI, backslash as slash", "x-served-windows"},
                   {"WSGI, X-Original-URL honoured", "x-served-rewriting"}}});
}

std::string ServedBy(const Reader& reader, const Seen& seen) {
  if (!seen.answers.empty()) {
    const Message& answer = seen.answers.front();
    return answer.status / 100 == 2 ? answer.Field(reader.header) : "none";
  }
  // A response without a head, to a request without an HTTP version: the Python server then reports
  // in the body what it served.
  std::string lower = seen.rest;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const char* const what : {"admin", "login"}) {
    if (lower.find(reader.header + ": " + what) != std::string::npos) return what;
  }
  return {};
}

bool IsProtected(const std::string& served) { return served == "admin" || served == "login"; }

bool Reached(const Upstream& upstream, const Seen& seen) {
  return std::any_of(upstream.readers.begin(), upstream.readers.end(), [&](const Reader& reader) {
    return !seen.answers.empty() && seen.answers.front().Count(reader.header) != 0;
  });
}

int StatusOf(const Seen& seen) { return seen.answers.empty() ? 0 : seen.answers.front().status; }

bool Failed(const Seen& seen) {
  const int status = StatusOf(seen);
  return status == 500 || (status >= 502 && status <= 504);
}

FleetGateway::FleetGateway(UpstreamFleet& fleet, const std::string& more, const std::string& route)
    : api_port_(test::FreePort()) {
  const int port = test::FreePort();
  std::string routes = "routes:\n";
  std::string upstreams = "upstreams:\n";
  const auto add = [&](const std::string& name, int upstream_port) {
    routes += "  - { match: { host: " + name + ".test }, upstream: " + name + route + " }\n";
    // Each row is independent: ejection and retries are off, so that a server that closes
    // connections or rejects requests still gets each row exactly once.
    upstreams += "  " + name + ": { targets: [\"http://" + At(upstream_port) +
                 "\"], ejection: off, retries: off }\n";
  };
  for (const Upstream& upstream : fleet.all()) add(upstream.name, upstream.port);
  add("raw", fleet.raw().port());
  const std::string config = "listen: { gateway: \"" + At(port) + "\", api: \"" + At(api_port_) +
                             "\", admin: \"" + At(test::FreePort()) + "\" }\n" +
                             "access_log: off\n"
                             "client_ip: { trusted_proxies: [127.0.0.1, 127.77.0.0/16] }\n" +
                             routes + upstreams + more;
  process_ = ProxyProcess::Other(
      port, {{"tidegate.yaml", config}},
      {TIDEGATE_BINARY, "serve", "--threads", "3", "--config", "FOLDER/tidegate.yaml"});
}

std::string AddressOf(int net, std::size_t run, std::size_t index) {
  return std::to_string(net) + "." + std::to_string(run) + "." + std::to_string(index / 250) + "." +
         std::to_string(index % 250 + 1);
}

}  // namespace tidegate::gateway_test
