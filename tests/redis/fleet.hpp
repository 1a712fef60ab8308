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

/// A response to a request on a connection of its own.
struct Answer : test::HttpResponse {
  /// The text of the first member of that name; without quotes. Empty: there is none.
  [[nodiscard]] std::string Member(std::string_view name) const;
  /// The number of the first member of that name; -1: there is none.
  [[nodiscard]] double Number(std::string_view name) const;
};
[[nodiscard]] Answer Ask(int port, std::string_view path, std::string_view body);
[[nodiscard]] Answer Fetch(int port, std::string_view path);

/// Listeners that few tests need.
struct ExtraListeners {
  enum class Admin : bool { kOpen, kAsksForTokens };
  int gateway = 0;  ///< Its port, if not 0.
  Admin admin = Admin::kOpen;
};

/// One tidegate process. All that it says goes to a file.
class Node {
 public:
  /// `yaml` without `listen`; `folder` outlives it. `resp`: the port of that listener, if not 0.
  Node(const std::filesystem::path& folder, std::string name, std::string yaml, int threads,
       int resp = 0, ExtraListeners extra = {});

  [[nodiscard]] int api() const noexcept { return api_; }
  [[nodiscard]] int admin() const noexcept { return admin_; }
  [[nodiscard]] int resp() const noexcept { return resp_; }
  [[nodiscard]] int gateway() const noexcept { return extra_.gateway; }
  /// Its configuration, which it watches.
  [[nodiscard]] std::filesystem::path file() const { return folder_ / (name_ + ".yaml"); }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] bool Alive() { return process_.alive(); }
  [[nodiscard]] std::string Said() const { return process_.Output(); }
  [[nodiscard]] std::int64_t ResidentBytes() const { return process_.ResidentBytes(); }
  [[nodiscard]] int Descriptors() const { return process_.Descriptors(); }
  [[nodiscard]] double CpuSeconds() const { return process_.CpuSeconds(); }

  void Kill() { process_.Kill(); }
  /// On the same ports. Throws, with what it said, if it does not come up.
  void Start();
  void Signal(int signal) const { process_.Signal(signal); }

  [[nodiscard]] Answer Decide(std::string_view body) const { return Ask(api_, "/v1/decide", body); }
  /// All lines of /metrics of that name, added up; if given, only those with that label, written
  /// `reason="timeout"`.
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

/// Some tidegate processes with one configuration.
class Fleet {
 public:
  struct Options {
    std::string yaml = {};  ///< Without `listen`.
    int nodes = 3;
    int threads = 1;
    bool resp = false;  ///< With that listener.
  };
  explicit Fleet(const Options& options);

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  Node& operator[](std::size_t node) { return *nodes_[node]; }
  [[nodiscard]] std::vector<int> Apis() const;
  [[nodiscard]] bool AllAlive();
  /// Over all nodes.
  [[nodiscard]] double Metric(std::string_view name, std::string_view label = {}) const;
  [[nodiscard]] std::int64_t ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;
  [[nodiscard]] std::string Said() const;
  /// The lines of /metrics about what was not the store's, and why, as far as they are not 0.
  [[nodiscard]] std::string Failures() const;

 private:
  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tidegate::redis_test
