// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/redis_server.hpp"
#include "support/files.hpp"
#include "support/http_client.hpp"
#include "support/tidegate_process.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {

/// The response to a request that was sent on its own connection.
struct Answer : test::HttpResponse {
  /// Returns the text of the first JSON member with that name, without quotes; empty if there is
  /// none.
  [[nodiscard]] std::string Member(std::string_view name) const;
  /// Returns the number in the first JSON member with that name; -1 if there is none.
  [[nodiscard]] double Number(std::string_view name) const;
};
[[nodiscard]] Answer Ask(int port, std::string_view path, std::string_view body);
[[nodiscard]] Answer Fetch(int port, std::string_view path);

/// Optional listeners of a node, which few tests need.
struct ExtraListeners {
  enum class Admin : bool { kOpen, kAsksForTokens };
  int gateway = 0;  ///< Port of the gateway listener; 0: no such listener.
  Admin admin = Admin::kOpen;
};

/// One tidegate process. Its output goes to a file.
class Node {
 public:
  /// Starts the process. `yaml` is the configuration without `listen`. `folder` must outlive the
  /// node. `resp` is the port of the RESP listener; 0: no such listener.
  Node(const std::filesystem::path& folder, std::string name, std::string yaml, int threads,
       int resp = 0, ExtraListeners extra = {});

  [[nodiscard]] int api() const noexcept { return api_; }
  [[nodiscard]] int admin() const noexcept { return admin_; }
  [[nodiscard]] int resp() const noexcept { return resp_; }
  [[nodiscard]] int gateway() const noexcept { return extra_.gateway; }
  /// Path of the configuration file, which the process watches for changes.
  [[nodiscard]] std::filesystem::path file() const { return folder_ / (name_ + ".yaml"); }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] bool Alive() { return process_.alive(); }
  [[nodiscard]] std::string Output() const { return process_.Output(); }
  [[nodiscard]] std::int64_t ResidentBytes() const { return process_.ResidentBytes(); }
  [[nodiscard]] int Descriptors() const { return process_.Descriptors(); }
  [[nodiscard]] double CpuSeconds() const { return process_.CpuSeconds(); }

  void Kill() { process_.Kill(); }
  /// Starts the process again on the same ports. Throws, with the process's output, if it does not
  /// start.
  void Start();
  void Signal(int signal) const { process_.Signal(signal); }

  [[nodiscard]] Answer Decide(std::string_view body) const { return Ask(api_, "/v1/decide", body); }
  /// Returns the sum of all lines of /metrics with that name. `label`, such as `reason="timeout"`,
  /// selects the lines that contain it; empty: all lines.
  [[nodiscard]] double Metric(std::string_view name, std::string_view label = {}) const;
  [[nodiscard]] std::string Metrics() const;

 private:
  std::filesystem::path folder_;
  std::string name_;
  std::string yaml_;
  int threads_;
  int resp_;
  ExtraListeners extra_;
  int api_ = 0;
  int admin_ = 0;
  test::TidegateProcess process_;
};

/// Several tidegate processes with the same configuration.
class Fleet {
 public:
  struct Options {
    std::string yaml = {};  ///< Configuration without `listen`.
    int nodes = 3;
    int threads = 1;
    bool resp = false;  ///< True if each node has a RESP listener.
  };
  explicit Fleet(const Options& options);

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  Node& operator[](std::size_t node) { return *nodes_[node]; }
  [[nodiscard]] std::vector<int> Apis() const;
  [[nodiscard]] bool AllAlive();
  /// Returns the sum of a metric over all nodes; see Node::Metric.
  [[nodiscard]] double Metric(std::string_view name, std::string_view label = {}) const;
  [[nodiscard]] std::int64_t ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;
  [[nodiscard]] std::string Output() const;
  /// Returns the lines of /metrics that count failures and Redis errors and are not 0.
  [[nodiscard]] std::string Failures() const;

 private:
  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tidegate::redis_test
