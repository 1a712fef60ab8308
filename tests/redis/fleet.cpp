// SPDX-License-Identifier: Apache-2.0
#include "redis/fleet.hpp"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Sends a request with `Connection: close` on a new connection. Returns status 0 if no response
/// arrives.
Answer Exchange(int port, const std::string& request) {
  test::HttpClient client(std::make_unique<test::Stream>(test::ConnectTo(port)));
  client.Send(request);
  return {client.ReadPartial()};
}

}  // namespace

std::string Answer::Member(std::string_view name) const {
  const std::string wanted = '"' + std::string(name) + "\":";
  const std::size_t at = body.find(wanted);
  if (at == std::string::npos) return {};
  std::size_t begin = at + wanted.size();
  if (body[begin] == '"') return body.substr(begin + 1, body.find('"', begin + 1) - begin - 1);
  return body.substr(begin, body.find_first_of(",}]", begin) - begin);
}

double Answer::Number(std::string_view name) const {
  const std::string text = Member(name);
  double number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Answer Ask(int port, std::string_view path, std::string_view body) {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  request += "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ";
  request += std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  return Exchange(port, request);
}

Answer Fetch(int port, std::string_view path) {
  return Exchange(port, "GET " + std::string(path) +
                            " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
}

Node::Node(const fs::path& folder, std::string name, std::string yaml, int threads, int resp,
           ExtraListeners extra)
    : folder_(folder),
      name_(std::move(name)),
      yaml_(std::move(yaml)),
      threads_(threads),
      resp_(resp),
      extra_(extra) {
  Start();
}

void Node::Start() {
  const fs::path config = file();
  const auto listener = [](std::string_view name, int port) {
    return ", " + std::string(name) + ": \"127.0.0.1:" + std::to_string(port) + '"';
  };
  const bool asks = extra_.admin == ExtraListeners::Admin::kAsksForTokens;
  std::ofstream(config) << "listen: {api: \"127.0.0.1:" << api_
                        << "\", admin: { address: \"127.0.0.1:" << admin_ << '"'
                        << (asks ? ", auth: required }" : " }")
                        << (resp_ == 0 ? "" : listener("resp", resp_))
                        << (extra_.gateway == 0 ? "" : listener("gateway", extra_.gateway))
                        << "}\n"
                        // Without root, the test can count the descriptors of a dumpable process
                        // only.
                        << (geteuid() == 0 ? "" : "process: {dumpable: true}\n") << yaml_;
  process_ = test::TidegateProcess(
      {"serve", "--config", config.string(), "--threads", std::to_string(threads_)},
      {.output = folder_ / (name_ + ".log")});
  api_ = process_.Port("HTTP API");
  admin_ = process_.Port("admin");
}

std::string Node::Metrics() const { return Fetch(admin_, "/metrics").body; }

double Node::Metric(std::string_view name, std::string_view label) const {
  std::istringstream lines(Metrics());
  double total = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const char next = line[name.size()];
    if ((next != '{' && next != ' ') || line.find(label) == std::string::npos) continue;
    double value = 0;
    std::from_chars(line.data() + line.rfind(' ') + 1, line.data() + line.size(), value);
    total += value;
  }
  return total;
}

Fleet::Fleet(const Options& options) {
  for (int i = 0; i < options.nodes; ++i) {
    nodes_.push_back(std::make_unique<Node>(folder_.path(), "node" + std::to_string(i),
                                            options.yaml, options.threads,
                                            options.resp ? test::FreePort() : 0));
  }
}

std::vector<int> Fleet::Apis() const {
  std::vector<int> ports;
  for (const auto& node : nodes_) ports.push_back(node->api());
  return ports;
}

bool Fleet::AllAlive() {
  bool alive = true;
  for (const auto& node : nodes_) alive = node->Alive() && alive;
  return alive;
}

double Fleet::Metric(std::string_view name, std::string_view label) const {
  double total = 0;
  for (const auto& node : nodes_) total += node->Metric(name, label);
  return total;
}

std::int64_t Fleet::ResidentBytes() const {
  std::int64_t total = 0;
  for (const auto& node : nodes_) total += node->ResidentBytes();
  return total;
}

int Fleet::Descriptors() const {
  int total = 0;
  for (const auto& node : nodes_) total += node->Descriptors();
  return total;
}

std::string Fleet::Failures() const {
  std::string all;
  for (const auto& node : nodes_) {
    std::istringstream lines(node->Metrics());
    for (std::string line; std::getline(lines, line);) {
      const bool is_failure = line.starts_with("tidegate_failures_total{") ||
                              line.starts_with("tidegate_redis_errors_total{");
      if (is_failure && !line.ends_with(" 0")) all += line + '\n';
    }
  }
  return all;
}

std::string Fleet::Output() const {
  std::string all;
  for (const auto& node : nodes_) {
    all += "--- output of a node:\n";
    std::istringstream lines(node->Output());
    for (std::string line; std::getline(lines, line);) {
      // Skips two long warnings that every configuration of these tests causes.
      if (line.find("fresh limit") == std::string::npos &&
          line.find("many people may share") == std::string::npos) {
        all += line + '\n';
      }
    }
  }
  return all;
}

}  // namespace tidegate::redis_test
