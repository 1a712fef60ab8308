// SPDX-License-Identifier: Apache-2.0
// CPU time per request of the HTTP API beside nginx's, in one run: the servers on one core, the
// load on another, taking turns. Usage: http_bench TIDEGATE [ROUNDS [SECONDS]]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "child.hpp"
#include "http_load.hpp"

namespace tidegate::bench {
namespace {

constexpr int kServerCore = 0;
constexpr int kLoadCore = 1;
constexpr int kConnections = 64;
constexpr int kIdentities = 10'000;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tidegate-bench-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { (void)!system(("rm -rf " + path_).c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Post(const std::string& path, const std::string& identity, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Key: " + identity +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

/// As nginx's auth_request asks for a small client.
std::string Auth(unsigned rule, const std::string& identity) {
  return "GET /v1/auth?deny_status=403 HTTP/1.1\r\nHost: h" + std::to_string(rule % 100) +
         ".example.com\r\nX-Original-URI: /v1/p" + std::to_string(rule) +
         "/x\r\nX-Original-Method: GET\r\nX-Forwarded-For: 203.0.113.7\r\n"
         "User-Agent: bench\r\nAccept: */*\r\nX-Key: " +
         identity + "\r\n\r\n";
}

/// A server and the requests that it is measured by.
struct Contender {
  std::string name;
  std::unique_ptr<Child> server;
  std::unique_ptr<HttpLoad> load;
  std::vector<std::string> requests;
  std::vector<double> micros;  ///< CPU time per request, one per round.

  void Connect(int port) {
    if (!WaitForPort(port)) throw std::runtime_error(name + " did not start");
    load = std::make_unique<HttpLoad>(port, kConnections, [this](std::uint64_t i) -> const auto& {
      return requests[i % requests.size()];
    });
  }
  void Round(double seconds) {
    const double before = server->CpuSeconds();
    const auto outcome = load->Run(seconds);
    const double used = server->CpuSeconds() - before;
    if (outcome.failed != 0 || outcome.ok != outcome.answers) {
      throw std::runtime_error(name + ": " + std::to_string(outcome.answers - outcome.ok) + " of " +
                               std::to_string(outcome.answers) + " were not 200");
    }
    micros.push_back(used * 1e6 / static_cast<double>(outcome.answers));
  }
  [[nodiscard]] double Median() const {
    std::vector<double> sorted = micros;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

std::string NginxConfig(const Folder& folder, int port, bool really_limited) {
  // `return` answers before limit_req is asked; try_files comes after it.
  const std::string answer = really_limited
                                 ? "limit_req zone=keys burst=1000000 nodelay; try_files /none @ok;"
                                 : "limit_req zone=keys burst=1000000 nodelay; return 200 \"ok\";";
  return "daemon off; master_process off; worker_processes 1; pid " + folder.path() +
         "/nginx.pid; error_log /dev/null crit;\n"
         "events { worker_connections 1024; }\n"
         "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 3600;\n"
         "client_body_temp_path " +
         folder.path() + "; proxy_temp_path " + folder.path() + "; fastcgi_temp_path " +
         folder.path() + "; uwsgi_temp_path " + folder.path() + "; scgi_temp_path " +
         folder.path() +
         ";\n"
         "limit_req_zone $http_x_key zone=keys:32m rate=1000000r/s;\n"
         "server { listen 127.0.0.1:" +
         std::to_string(port) + "; root " + folder.path() + "; location / { " + answer +
         " } location @ok { return 200 \"ok\"; } } }\n";
}

std::unique_ptr<Contender> StartNginx(const Folder& folder, bool really_limited) {
  auto nginx = std::make_unique<Contender>();
  nginx->name = really_limited ? "nginx, limit_req in force" : "nginx, limit_req and return 200";
  const int port = FreePort();
  const std::string file = folder.Write(really_limited ? "limited.conf" : "plain.conf",
                                        NginxConfig(folder, port, really_limited));
  for (int i = 0; i < kIdentities; ++i) {
    const std::string identity = "client-" + std::to_string(i);
    nginx->requests.push_back(
        Post("/v1/decide", identity, R"({"rule":"r0","identity":")" + identity + "\"}"));
  }
  nginx->server = std::make_unique<Child>(
      std::vector<std::string>{"nginx", "-e", "/dev/null", "-c", file}, kServerCore);
  nginx->Connect(port);
  return nginx;
}

std::string TidegateConfig(int port, int rules) {
  std::string yaml = "listen: {api: \"127.0.0.1:" + std::to_string(port) +
                     "\", admin: \"off\"}\nclient_ip: {trusted_proxies: [127.0.0.1]}\nrules:\n";
  for (int i = 0; i < rules; ++i) {
    const std::string n = std::to_string(i);
    yaml.append("  - {id: r").append(n).append(", match: {host: h");
    yaml.append(std::to_string(i % 100)).append(".example.com, path: /v1/p").append(n);
    yaml += "/**, method: [GET, POST]}, per: header:x-key, limit: 1000000/s}\n";
  }
  return yaml;
}

enum class AskBy { kRule, kRequest, kAuth };

std::unique_ptr<Contender> StartTidegate(const std::string& binary, const Folder& folder, int rules,
                                         AskBy by) {
  auto tidegate = std::make_unique<Contender>();
  tidegate->name = "tidegate, " + std::to_string(rules) + " rules, by " +
                   (by == AskBy::kRule      ? "{rule, identity}"
                    : by == AskBy::kRequest ? "{request}"
                                            : "/v1/auth");
  const int port = FreePort();
  const std::string file =
      folder.Write("tidegate-" + std::to_string(port) + ".yaml", TidegateConfig(port, rules));
  std::mt19937 random(1);
  for (int i = 0; i < kIdentities; ++i) {
    const std::string identity = "client-" + std::to_string(i);
    const unsigned rule = static_cast<unsigned>(random()) % static_cast<unsigned>(rules);
    const std::string n = std::to_string(rule);
    std::string body;
    if (by == AskBy::kAuth) {
      tidegate->requests.push_back(Auth(rule, identity));
      continue;
    }
    if (by == AskBy::kRule) {
      body.append(R"({"rule":"r)").append(n).append(R"(","identity":")").append(identity);
      body += "\"}";
    } else {
      body.append(R"({"request":{"method":"GET","host":"h)").append(std::to_string(rule % 100));
      body.append(R"(.example.com","path":"/v1/p)").append(n);
      body.append(R"(/x","headers":{"x-key":")").append(identity).append("\"}}}");
    }
    tidegate->requests.push_back(Post("/v1/decide", identity, body));
  }
  tidegate->server = std::make_unique<Child>(
      std::vector<std::string>{binary, "serve", "--config", file, "--threads", "1"}, kServerCore);
  tidegate->Connect(port);
  return tidegate;
}

/// The median of the rounds' ratios: both were measured within the same seconds.
double Ratio(const Contender& a, const Contender& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.micros.size(); ++i) ratios.push_back(a.micros[i] / b.micros[i]);
  std::ranges::sort(ratios);
  return ratios[ratios.size() / 2];
}

bool Bar(const char* what, double ratio, double most) {
  std::printf("%-72s %5.2fx  (<= %.2fx) %s\n", what, ratio, most,
              ratio <= most ? "holds" : "MISSED");
  return ratio <= most;
}

int Run(const std::string& binary, int rounds, double seconds) {
  const Folder folder;
  PinSelf(kLoadCore);
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(StartNginx(folder, false));
  all.push_back(StartNginx(folder, true));
  all.push_back(StartTidegate(binary, folder, 10, AskBy::kRule));
  all.push_back(StartTidegate(binary, folder, 10'000, AskBy::kRule));
  all.push_back(StartTidegate(binary, folder, 10, AskBy::kRequest));
  all.push_back(StartTidegate(binary, folder, 10'000, AskBy::kRequest));
  all.push_back(StartTidegate(binary, folder, 10, AskBy::kAuth));
  for (auto& contender : all) contender->load->Run(0.3);  // Warm.
  for (int round = 0; round < rounds; ++round) {
    std::fprintf(stderr, "round %d of %d\r", round + 1, rounds);
    for (auto& contender : all) contender->Round(seconds);
  }
  std::fprintf(stderr, "\n");
  std::printf("%d connections, %d rounds of %.1f s; CPU time per request, median:\n", kConnections,
              rounds, seconds);
  for (const auto& contender : all) {
    std::printf("  %-50s %6.2f us\n", contender->name.c_str(), contender->Median());
  }
  bool held =
      Bar("POST /v1/decide beside nginx with limit_req and return 200", Ratio(*all[2], *all[0]), 1);
  held &= Bar("POST /v1/decide beside nginx with limit_req in force (try_files)",
              Ratio(*all[2], *all[1]), 1);
  held &= Bar("/v1/auth beside nginx with limit_req and return 200", Ratio(*all[6], *all[0]), 1);
  held &= Bar("10,000 rules beside 10, by {rule, identity}", Ratio(*all[3], *all[2]), 2);
  held &= Bar("10,000 rules beside 10, by {request}", Ratio(*all[5], *all[4]), 2);
  return held ? 0 : 1;
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::runtime_error("usage: http_bench TIDEGATE [ROUNDS [SECONDS]]");
    return tidegate::bench::Run(argv[1], argc > 2 ? std::stoi(argv[2]) : 25,
                                argc > 3 ? std::stod(argv[3]) : 0.3);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "http_bench: %s\n", error.what());
    return 1;
  }
}
