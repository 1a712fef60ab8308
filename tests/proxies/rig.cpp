// SPDX-License-Identifier: Apache-2.0
#include "proxies/rig.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "support/ports.hpp"

namespace tidegate::proxies_test {
namespace {

using gateway_test::Message;
using gateway_test::ProxyProcess;

std::string At(int port) { return "127.0.0.1:" + std::to_string(port); }

/// Starts nginx as if it were installed, except that it writes only into its own folder.
std::unique_ptr<ProxyProcess> StartNginx(int port, Changes changes) {
  changes.emplace_back("127.0.0.1:8000", At(port));
  std::string config = Recipe("nginx.conf", changes);
  const std::string_view http = "http {\n";
  std::string temporary;
  for (const char* what : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    temporary.append("  ").append(what).append("_temp_path FOLDER/").append(what).append(";\n");
  }
  config.insert(config.find(http) + http.size(), temporary + "  access_log off;\n");
  return ProxyProcess::Other(
      port, {{"nginx.conf", config}},
      {"nginx", "-p", "FOLDER", "-e", "stderr", "-c", "FOLDER/nginx.conf", "-g",
       "daemon off; master_process off; pid FOLDER/pid; error_log stderr crit;"});
}

std::unique_ptr<ProxyProcess> StartHaproxy(int port, Changes changes) {
  changes.emplace_back("127.0.0.1:8000", At(port));
  changes.emplace_back("/etc/haproxy/tidegate.lua", "FOLDER/tidegate.lua");
  // An abstract socket name that is unique on this machine: all processes share these names.
  changes.emplace_back("lua.tidegate abns@tidegate", "lua.tidegate abns@" + At(port));
  changes.emplace_back("bind abns@tidegate", "bind abns@" + At(port));
  return ProxyProcess::Other(port,
                             {{"haproxy.cfg", Recipe("haproxy.cfg", changes)},
                              {"tidegate.lua", Recipe("tidegate.lua", {})}},
                             {"haproxy", "-db", "-f", "FOLDER/haproxy.cfg"});
}

std::unique_ptr<ProxyProcess> StartCaddy(int port, Changes changes) {
  const int yes = test::FreePort();
  changes.emplace_back("127.0.0.1:8099", At(yes));
  changes.emplace_back("http://:8099", "http://:" + std::to_string(yes));
  changes.emplace_back("http://:8000", "http://:" + std::to_string(port));
  return ProxyProcess::Other(
      port, {{"Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n" + Recipe("Caddyfile", changes)}},
      {"env", "HOME=FOLDER", "XDG_DATA_HOME=FOLDER", "XDG_CONFIG_HOME=FOLDER", "caddy", "run",
       "--config", "FOLDER/Caddyfile", "--adapter", "caddyfile"});
}

Changes WithPatience(std::string_view proxy) {
  if (proxy == "nginx") {
    return {{"proxy_connect_timeout 100ms", "proxy_connect_timeout 5s"},
            {"proxy_read_timeout    250ms", "proxy_read_timeout 5s"}};
  }
  if (proxy == "haproxy") {
    return {{"timeout connect 100ms", "timeout connect 5s"},
            {"timeout queue 100ms", "timeout queue 5s"},
            {"timeout server 250ms", "timeout server 5s"}};
  }
  return {{"dial_timeout 100ms", "dial_timeout 5s"},
          {"response_header_timeout 250ms", "response_header_timeout 5s"}};
}

int ConnectFrom(const std::string& address, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, address.c_str(), &from.sin_addr), 1);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from), 0) << address;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return fd;
}

}  // namespace

std::string Recipe(const std::string& file, const Changes& changes) {
  std::ifstream in(std::string(TIDEGATE_RECIPES "/") + file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const auto& [from, to] : changes) {
    std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << file << " has no " << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

Rig::Rig(const std::string& proxy, Setup setup) : api_(test::FreePort()) {
  Changes& changes = setup.tidegate;
  changes.emplace_back("api: 127.0.0.1:8081", "api: " + At(api_));
  changes.emplace_back("admin: 127.0.0.1:9180", "admin: " + At(test::FreePort()));
  // Per hour, so that no units are refilled during the test.
  changes.emplace_back("limit: 5/m", "limit: 5/h");
  config_ = Recipe("tidegate.yaml", changes).append(setup.more);
  StartTidegate();
  const int port = test::FreePort();
  Changes places = std::move(setup.proxy);
  if (setup.patience == Patience::kLong) {
    for (auto& change : WithPatience(proxy)) places.push_back(std::move(change));
  }
  places.emplace_back("127.0.0.1:8081", At(api_));
  places.emplace_back("127.0.0.1:9000", At(upstream_.port()));
  proxy_ = proxy == "nginx"     ? StartNginx(port, places)
           : proxy == "haproxy" ? StartHaproxy(port, places)
                                : StartCaddy(port, places);
}

void Rig::StartTidegate() {
  tidegate_ = ProxyProcess::Other(
      api_, {{"tidegate.yaml", config_}},
      {TIDEGATE_BINARY, "serve", "--threads", "1", "--config", "FOLDER/tidegate.yaml"});
}

Message Rig::Ask(const Client& client) const {
  const int fd = ConnectFrom(client.address, proxy_->port());
  std::string request = client.method + " " + client.target + " HTTP/1.1\r\nHost: " + client.host +
                        "\r\n" + client.fields;
  if (!client.body.empty()) {
    request += "Content-Length: " + std::to_string(client.body.size()) + "\r\n";
  }
  request += "\r\n" + client.body;
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), std::ssize(request));
  std::string received;
  Message answer;
  char buffer[65536];
  while (answer.frame == gateway_test::Frame::kPartial) {
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got > 0) received.append(buffer, static_cast<std::size_t>(got));
    answer = gateway_test::ReadAnswer(received,
                                      {.after_head = client.method == "HEAD", .closed = got <= 0});
    if (got <= 0) break;
  }
  close(fd);
  EXPECT_EQ(answer.frame, gateway_test::Frame::kWhole) << gateway_test::Printable(received) << "\n"
                                                       << proxy_->Output();
  return answer;
}

std::vector<Message> Rig::Passed() const {
  std::vector<Message> passed;
  for (Message& request : upstream_.Requests()) {
    if (request.target != "/ready") passed.push_back(std::move(request));
  }
  return passed;
}

}  // namespace tidegate::proxies_test
