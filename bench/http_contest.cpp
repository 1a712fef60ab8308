// SPDX-License-Identifier: Apache-2.0
#include "http_contest.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "rounds.hpp"

namespace tidegate::bench {

Folder::Folder() {
  char name[] = "/tmp/tidegate-bench-XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

Folder::~Folder() { (void)!system(("rm -rf " + path_).c_str()); }

std::string Folder::Write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ + "/" + name) << text;
  return path_ + "/" + name;
}

Contender::Contender(std::string name, std::vector<std::string> command, int port,
                     std::vector<std::string> requests)
    : name_(std::move(name)),
      requests_(std::move(requests)),
      server_(std::move(command), kServerCore) {
  if (!WaitForPort(port)) throw std::runtime_error(name_ + " did not start");
  load_ = std::make_unique<HttpLoad>(
      port, kHttpConnections,
      [this](std::uint64_t i) -> const auto& { return requests_[i % requests_.size()]; });
}

void Contender::Round(double seconds) {
  const double before = server_.CpuSeconds();
  const auto outcome = load_->Run(seconds);
  const double used = server_.CpuSeconds() - before;
  if (outcome.failed != 0 || outcome.ok != outcome.answers) {
    throw std::runtime_error(name_ + ": " + std::to_string(outcome.answers - outcome.ok) + " of " +
                             std::to_string(outcome.answers) + " were not 200");
  }
  micros_.push_back(used * 1e6 / static_cast<double>(outcome.answers));
}

std::unique_ptr<Contender> StartNginx(const Folder& folder, NginxLimit limit,
                                      const std::string& key, std::vector<std::string> requests) {
  const bool in_force = limit == NginxLimit::kInForce;
  const std::string answer = in_force
                                 ? "limit_req zone=keys burst=1000000 nodelay; try_files /none @ok;"
                                 : "limit_req zone=keys burst=1000000 nodelay; return 200 \"ok\";";
  const int port = FreePort();
  const std::string& home = folder.path();
  const std::string file = folder.Write(
      in_force ? "limited.conf" : "plain.conf",
      "daemon off; master_process off; worker_processes 1; pid " + home +
          "/nginx.pid; error_log /dev/null crit;\n"
          "events { worker_connections 1024; }\n"
          "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 3600;\n"
          "client_body_temp_path " +
          home + "; proxy_temp_path " + home + "; fastcgi_temp_path " + home +
          "; uwsgi_temp_path " + home + "; scgi_temp_path " + home +
          ";\n"
          "limit_req_zone " +
          key +
          " zone=keys:32m rate=1000000r/s;\n"
          "server { listen 127.0.0.1:" +
          std::to_string(port) + "; root " + home + "; location / { " + answer +
          " } location @ok { return 200 \"ok\"; } } }\n");
  return std::make_unique<Contender>(
      in_force ? "nginx, limit_req in force" : "nginx, limit_req and return 200",
      std::vector<std::string>{"nginx", "-e", "/dev/null", "-c", file}, port, std::move(requests));
}

std::unique_ptr<Contender> StartTidegate(const std::string& binary, const Folder& folder,
                                         std::string name, const std::string& yaml,
                                         std::vector<std::string> requests) {
  const std::string port = std::to_string(FreePort());
  const std::string file =
      folder.Write("tidegate-" + port + ".yaml",
                   "listen: {api: \"127.0.0.1:" + port + "\", admin: \"off\"}\n" + yaml);
  return std::make_unique<Contender>(
      std::move(name),
      std::vector<std::string>{binary, "serve", "--config", file, "--threads", "1"},
      std::stoi(port), std::move(requests));
}

void RunContest(const std::string& label, const std::vector<std::unique_ptr<Contender>>& all,
                int rounds, double seconds) {
  for (const auto& contender : all) contender->Warm();
  for (int round = 0; round < rounds; ++round) {
    ShowProgress(label, round, rounds);
    for (const auto& contender : all) contender->Round(seconds);
  }
  std::printf("%d connections, %d rounds of %.1f s; CPU time per request, median:\n",
              kHttpConnections, rounds, seconds);
  for (const auto& contender : all) {
    std::printf("  %-50s %6.2f us\n", contender->name().c_str(), MedianOf(contender->micros()));
  }
}

bool Bar(const char* what, const Contender& a, const Contender& b, double most) {
  const double ratio = MedianRatio(a.micros(), b.micros());
  std::printf("%-72s %5.2fx  (<= %.2fx) %s\n", what, ratio, most,
              ratio <= most ? "holds" : "MISSED");
  return ratio <= most;
}

}  // namespace tidegate::bench
