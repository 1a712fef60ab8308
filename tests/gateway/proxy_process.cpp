// SPDX-License-Identifier: Apache-2.0
#include "gateway/proxy_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace tidegate::gateway_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Where the program is; empty: nowhere.
std::string Find(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/usr/local/sbin/", "/usr/bin/", "/usr/local/bin/"}) {
    if (access((folder + program).c_str(), X_OK) == 0) return folder + program;
  }
  return {};
}

bool Answers(int port) {
  const int fd = ConnectTo(port);
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
  // Under the folder: the compiled-in ones belong to root.
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

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!ok) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

int ConnectTo(int port, const std::string& from) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (!from.empty() && (inet_pton(AF_INET, from.c_str(), &address.sin_addr) != 1 ||
                        bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)) {
    close(fd);
    return -1;
  }
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

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
  // More than there are cores, for then they are not pinned: what else runs on one core of a busy
  // machine can keep a thread that may not leave it waiting for seconds.
  const std::string threads = std::to_string(std::thread::hardware_concurrency() + 1);
  proxy->Start(
      TidegateConfig(proxy->port_, FreePort(), upstream_port) + more,
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

ProxyProcess::ProxyProcess(std::string name, int port) : name_(std::move(name)), port_(port) {
  std::string folder = (fs::temp_directory_path() / "tidegate-gateway-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = folder;
}

ProxyProcess::~ProxyProcess() {
  End();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void ProxyProcess::Start(const std::string& config, const std::vector<std::string>& arguments) {
  std::ofstream(folder_ / "config", std::ios::binary) << config;
  Launch(arguments);
}

void ProxyProcess::Launch(const std::vector<std::string>& arguments) {
  const std::string log = (folder_ / "log").string();
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  AwaitAnswer();
}

/// An answer, not only a connection: the system makes those before the process is ready for them.
void ProxyProcess::AwaitAnswer() {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline && alive()) {
    if (Answers(port_)) return;
    std::this_thread::sleep_for(2ms);
  }
  throw std::runtime_error(name_ + " does not come up: " + Said());
}

bool ProxyProcess::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

std::string ProxyProcess::Said() const {
  std::ifstream in(folder_ / "log", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void ProxyProcess::Pause() {
  if (pid_ <= 0) return;
  kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);  // Until all of its threads stand still.
}

void ProxyProcess::End() {
  if (pid_ <= 0) return;
  // Without mercy: what a proxy does with open connections when it is asked to end is its own
  // matter, and takes time.
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace tidegate::gateway_test
