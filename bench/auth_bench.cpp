// SPDX-License-Identifier: Apache-2.0
// Compares the CPU time per request of forward-auth (GET /v1/auth) with that of nginx's own limit,
// in one run. The servers run on one core, and the load generator on another core sends requests to
// them in turns. Usage: auth_bench TIDEGATE [--quick]
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "awake.hpp"
#include "http_contest.hpp"

namespace tidegate::bench {
namespace {

constexpr int kClients = 10'000;

/// Returns requests as Traefik and Caddy send them; each client has another address.
std::vector<std::string> Requests() {
  std::vector<std::string> requests;
  for (int i = 0; i < kClients; ++i) {
    requests.push_back(
        "GET /v1/auth HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Mozilla/5.0 (X11; Linux "
        "x86_64)\r\n"
        "Accept: */*\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\n"
        "X-Forwarded-Host: shop.example.com\r\nX-Forwarded-Uri: /v1/items/42?page=1\r\n"
        "X-Forwarded-For: 198.18." +
        std::to_string(i / 250) + "." + std::to_string(i % 250) + "\r\n\r\n");
  }
  return requests;
}

constexpr const char* kRules =
    "client_ip: {trusted_proxies: [127.0.0.1]}\n"
    "rules: [{id: per-ip, match: {path: /v1/**}, per: client_ip, limit: 1000000/s}]\n";

int Run(const std::string& binary, bool quick) {
  const Folder folder;
  PinTo(kLoadCore);
  const AwakeCores awake{kServerCore, kLoadCore};
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(StartNginx(folder, NginxLimit::kReturn, "$http_x_forwarded_for", Requests()));
  all.push_back(StartNginx(folder, NginxLimit::kInForce, "$http_x_forwarded_for", Requests()));
  all.push_back(StartTidegate(binary, folder, "tidegate, GET /v1/auth", kRules, Requests()));
  RunContest("auth", all, quick ? 15 : 51, quick ? 0.1 : 0.2);
  bool held = Bar("GET /v1/auth beside nginx with limit_req and return 200", *all[2], *all[0], 1);
  held &= Bar("GET /v1/auth beside nginx with limit_req in force (try_files)", *all[2], *all[1], 1);
  return held ? 0 : 1;
}

}  // namespace
}  // namespace tidegate::bench

int main(int argc, char** argv) {
  try {
    const bool quick = argc == 3 && std::string(argv[2]) == "--quick";
    if (argc < 2 || (argc > 2 && !quick)) {
      throw std::runtime_error("usage: auth_bench TIDEGATE [--quick]");
    }
    return tidegate::bench::Run(argv[1], quick);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "auth_bench: %s\n", error.what());
    return 1;
  }
}
