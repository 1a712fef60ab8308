// SPDX-License-Identifier: Apache-2.0
#include "redis_fleet.hpp"

#include <fstream>
#include <stdexcept>

namespace tidegate::bench {
namespace {

constexpr int kConnectionsEach = 128;

std::string Config(int port, const std::string& redis_url, const std::string& limit) {
  return "listen: {api: \"127.0.0.1:" + std::to_string(port) +
         "\", admin: \"off\"}\n"
         "store: {url: \"" +
         redis_url +
         "\", on_failure: local}\n"
         "rules:\n"
         "  - {id: per-key, match: {path: /**}, per: client_ip, algorithm: token_bucket, limit: " +
         limit + "}\n";
}

std::string Post(const std::string& identity) {
  const std::string address = identity.substr(identity.find('=') + 1);
  const std::string body = R"({"rule":"per-key","identity":")" + address + "\"}";
  return "POST /v1/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

Fleet::Fleet(const std::string& binary, const redis_test::RedisServer& redis,
             const std::vector<int>& cores, const std::string& limit) {
  for (const int core : cores) {
    const int port = FreePort();
    const std::string file = folder_.path() / (std::to_string(port) + ".yaml");
    std::ofstream(file) << Config(port, redis.url(), limit);
    servers_.push_back(std::make_unique<Child>(
        std::vector<std::string>{binary, "serve", "--config", file, "--threads", "1"}, core));
    ports_.push_back(port);
  }
  for (const int port : ports_) {
    if (!WaitForPort(port)) throw std::runtime_error("tidegate did not start");
  }
}

HttpPace::Outcome Fleet::Ask(const std::vector<std::string>& identities, Draws& draws,
                             double per_second, double seconds) {
  std::vector<std::string> requests;
  requests.reserve(identities.size());
  for (const std::string& identity : identities) requests.push_back(Post(identity));
  HttpPace pace(ports_, kConnectionsEach,
                [&](std::uint64_t) -> const auto& { return requests[draws.Next()]; });
  // Warm up: opens connections, grows memory and loads the scripts.
  (void)pace.Run(per_second / 5, 0.5);
  return pace.Run(per_second, seconds);
}

}  // namespace tidegate::bench
