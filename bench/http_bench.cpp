// SPDX-License-Identifier: Apache-2.0
// Compares the CPU time per request of the HTTP API with that of nginx, in one run. The servers run
// on one core, and the load generator on another core sends requests to them in turns. Usage:
// http_bench TIDEGATE [ROUNDS [SECONDS]]
#include <cstdio>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "http_contest.hpp"

namespace tidegate::bench {
namespace {

constexpr int kIdentities = 10'000;

std::string Post(const std::string& path, const std::string& identity, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Key: " + identity +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::vector<std::string> NginxRequests() {
  std::vector<std::string> requests;
  for (int i = 0; i < kIdentities; ++i) {
    const std::string identity = "client-" + std::to_string(i);
    requests.push_back(
        Post("/v1/decide", identity, R"({"rule":"r0","identity":")" + identity + "\"}"));
  }
  return requests;
}

std::string Rules(int rules) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < rules; ++i) {
    const std::string n = std::to_string(i);
    yaml.append("  - {id: r").append(n).append(", match: {host: h");
    yaml.append(std::to_string(i % 100)).append(".example.com, path: /v1/p").append(n);
    yaml += "/**, method: [GET, POST]}, per: header:x-key, limit: 1000000/s}\n";
  }
  return yaml;
}

enum class AskBy { kRule, kRequest };

std::vector<std::string> TidegateRequests(int rules, AskBy by) {
  std::vector<std::string> requests;
  std::mt19937 random(1);
  for (int i = 0; i < kIdentities; ++i) {
    const std::string identity = "client-" + std::to_string(i);
    const unsigned rule = static_cast<unsigned>(random()) % static_cast<unsigned>(rules);
    const std::string n = std::to_string(rule);
    std::string body;
    if (by == AskBy::kRule) {
      body.append(R"({"rule":"r)").append(n).append(R"(","identity":")").append(identity);
      body += "\"}";
    } else {
      body.append(R"({"request":{"method":"GET","host":"h)").append(std::to_string(rule % 100));
      body.append(R"(.example.com","path":"/v1/p)").append(n);
      body.append(R"(/x","headers":{"x-key":")").append(identity).append("\"}}}");
    }
    requests.push_back(Post("/v1/decide", identity, body));
  }
  return requests;
}

int Run(const std::string& binary, int rounds, double seconds) {
  const Folder folder;
  PinTo(kLoadCore);
  const auto tidegate = [&](int rules, AskBy by) {
    return StartTidegate(binary, folder,
                         "tidegate, " + std::to_string(rules) + " rules, by " +
                             (by == AskBy::kRule ? "{rule, identity}" : "{request}"),
                         Rules(rules), TidegateRequests(rules, by));
  };
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(StartNginx(folder, NginxLimit::kReturn, "$http_x_key", NginxRequests()));
  all.push_back(StartNginx(folder, NginxLimit::kInForce, "$http_x_key", NginxRequests()));
  all.push_back(tidegate(10, AskBy::kRule));
  all.push_back(tidegate(10'000, AskBy::kRule));
  all.push_back(tidegate(10, AskBy::kRequest));
  all.push_back(tidegate(10'000, AskBy::kRequest));
  RunContest("http", all, rounds, seconds);
  bool held =
      Bar("POST /v1/decide beside nginx with limit_req and return 200", *all[2], *all[0], 1);
  held &=
      Bar("POST /v1/decide beside nginx with limit_req in force (try_files)", *all[2], *all[1], 1);
  held &= Bar("10,000 rules beside 10, by {rule, identity}", *all[3], *all[2], 2);
  held &= Bar("10,000 rules beside 10, by {request}", *all[5], *all[4], 2);
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
