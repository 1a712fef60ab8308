// SPDX-License-Identifier: Apache-2.0
#include "gateway/proxy_process.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::gateway_test {
namespace {

namespace fs = std::filesystem;

/// Returns the path of the program; empty if it is not installed.
std::string Find(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/usr/local/sbin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (access((folder + program).c_str(), X_OK) == 0) return folder + program;
  }
  return {};
}

bool Answers(int port) {
  const int fd = test::ConnectTo(port);
  if (fd < 0) return false;
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  constexpr std::string_view kAsk = "GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  char byte = 0;
  const bool answered = send(fd, kAsk.data(), kAsk.size(), MSG_NOSIGNAL) > 0 &&
                        recv(fd, &byte, 1, 0) == 1 && byte == 'H';
  close(fd);
  return answered;
}

std::string NginxConfig(const std::string& folder, int port, int upstream) {
  std::string text = "daemon off;\nmaster_process off;\npid " + folder + "/pid;\n" +
                     "error_log stderr crit;\nevents { worker_connections 2000; }\nhttp {\n" +
                     "  access_log off;\n";
  // nginx must use paths in the test's folder, because its default folders belong to root.
  for (const char* what : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    text += "  " + std::string(what) + "_temp_path " + folder + "/" + what + ";\n";
  }
  text += "  upstream u { server 127.0.0.1:" + std::to_string(upstream) + "; keepalive 64; }\n";
  text +=
      "  server {\n    listen 127.0.0.1:" + std::to_string(port) + ";\n    server_name none;\n" +
      "    location / {\n      proxy_pass http://u;\n      proxy_http_version 1.1;\n" +
      "      proxy_set_header Connection \"\";\n      proxy_set_header Host $host;\n" +
      "      proxy_request_buffering off;\n      proxy_next_upstream off;\n" + "    }\n  }\n}\n";
  return text;
}

std::string HaproxyConfig(int port, int upstream) {
  return "global\n  maxconn 2000\ndefaults\n  mode http\n  retries 0\n  timeout connect 5s\n"
         "  timeout client 60s\n  timeout server 60s\nfrontend f\n  bind 127.0.0.1:" +
         std::to_string(port) +
         "\n  default_backend b\nbackend b\n  http-reuse safe\n  server s 127.0.0.1:" +
         std::to_string(upstream) + "\n";
}

std::string TidegateConfig(int port, int admin, int upstream) {
  return "listen: { gateway: \"127.0.0.1:" + std::to_string(port) +
         "\", api: off, admin: \"127.0.0.1:" + std::to_string(admin) +
         "\" }\naccess_log: off\nroutes: [ { match: { path: /** }, upstream: u } ]\n"
         "upstreams: { u: { targets: [ \"http://127.0.0.1:" +
         std::to_string(upstream) + "\" ] } }\n";
}

}  // namespace

std::unique_ptr<ProxyProcess> ProxyProcess::Nginx(int upstream_port) {
  const std::string program = Find("nginx");
  if (program.empty()) return nullptr;
  std::unique_ptr<ProxyProcess> proxy(new ProxyProcess("nginx"));
  const std::string folder = proxy->folder_.string();
  proxy->Start(NginxConfig(folder, proxy->port_, upstream_port),
               {program, "-p", folder, "-e", "stderr", "-c", folder + "/config"});
  return proxy;
}

std::unique_ptr<ProxyProcess> ProxyProcess::Haproxy(int upstream_port) {
  const std::string program = Find("haproxy");
  if (program.empty()) return nullptr;
  std::unique_ptr<ProxyProcess> proxy(new ProxyProcess("haproxy"));
  proxy->Start(HaproxyConfig(proxy->port_, upstream_port),
               {program, "-db", "-f", proxy->folder_.string() + "/config"});
  return proxy;
}

std::unique_ptr<ProxyProcess> ProxyProcess::Tidegate(const std::string& binary, int upstream_port,
                                                     const std::string& more) {
  std::unique_ptr<ProxyProcess> proxy(new ProxyProcess("tidegate"));
  // One thread more than there are cores: with that number, Tidegate does not pin its threads. A
  // pinned thread can wait for seconds on a busy machine while another program uses its core.
  const std::string threads = std::to_string(std::thread::hardware_concurrency() + 1);
  proxy->Start(
      TidegateConfig(proxy->port_, test::FreePort(), upstream_port) + more,
      {binary, "serve", "--threads", threads, "--config", proxy->folder_.string() + "/config"});
  return proxy;
}

std::unique_ptr<ProxyProcess> ProxyProcess::Other(int port,
                                                  const std::map<std::string, std::string>& files,
                                                  std::vector<std::string> arguments) {
  std::unique_ptr<ProxyProcess> proxy(new ProxyProcess(arguments.front(), port));
  const std::string folder = proxy->folder_.string();
  const auto fill_in = [&folder](std::string& text) {
    constexpr std::string_view kPlace = "FOLDER";
    for (std::size_t at = 0; (at = text.find(kPlace, at)) != std::string::npos;) {
      text.replace(at, kPlace.size(), folder);
    }
  };
  for (const auto& [name, template_text] : files) {
    std::string text = template_text;
    fill_in(text);
    std::ofstream(proxy->folder_ / name, std::ios::binary) << text;
  }
  for (std::string& argument : arguments) fill_in(argument);
  if (!arguments.front().starts_with('/')) arguments.front() = Find(arguments.front());
  proxy->Launch(arguments);
  return proxy;
}

bool ProxyProcess::Installed(const std::string& program) { return !Find(program).empty(); }

ProxyProcess::ProxyProcess(std::string name, int port) : name_(std::move(name)), port_(port) {}

void ProxyProcess::Start(const std::string& config, const std::vector<std::string>& arguments) {
  std::ofstream(folder_ / "config", std::ios::binary) << config;
  Launch(arguments);
}

void ProxyProcess::Launch(const std::vector<std::string>& arguments) {
  process_ = test::ChildProcess(arguments, {.output = folder_ / "log"});
  // Wait for a response, not only for a connection: the kernel accepts connections before the
  // process is ready to serve them.
  bool answers = false;
  const bool in_time = test::WaitUntil([&] {
    answers = Answers(port_);
    return answers || !alive();
  });
  if (!in_time || !answers) throw std::runtime_error(name_ + " does not start: " + Output());
}

}  // namespace tidegate::gateway_test
