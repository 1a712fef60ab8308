// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/redis_server.hpp"
#include "redis/soon.hpp"

namespace tidegate::redis_test {

/// One answer over a connection of its own.
struct Answer {
  int status = 0;  ///< 0: none came.
  std::string head;
  std::string body;
  /// The text of the first member of that name; without quotes. Empty: there is none.
  [[nodiscard]] std::string Member(std::string_view name) const;
  /// The number of the first member of that name; -1: there is none.
  [[nodiscard]] double Number(std::string_view name) const;
  /// The value of a field, by its name as it is written.
  [[nodiscard]] std::string Field(std::string_view name) const;
};
[[nodiscard]] Answer Ask(int port, std::string_view path, std::string_view body);
[[nodiscard]] Answer Fetch(int port, std::string_view path);

/// Doors that few need.
struct MoreDoors {
  enum class Admin : bool { kOpen, kAsksForTokens };
  int gateway = 0;  ///< Its port, if not 0.
  Admin admin = Admin::kOpen;
};

/// One tidegate process. All that it says goes to a file.
class Node {
 public:
  /// `yaml` without `listen`; `folder` outlives it. `resp`: the port of that door, if not 0.
  Node(const std::filesystem::path& folder, std::string name, std::string yaml, int threads,
       int resp = 0, MoreDoors doors = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] int api() const noexcept { return api_; }
  [[nodiscard]] int admin() const noexcept { return admin_; }
  [[nodiscard]] int resp() const noexcept { return resp_; }
  [[nodiscard]] int gateway() const noexcept { return doors_.gateway; }
  /// Its configuration, which it watches.
  [[nodiscard]] std::filesystem::path file() const { return folder_ / (name_ + ".yaml"); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool Alive();
  /// With the signal that it died of, if Alive has found that it did.
  [[nodiscard]] std::string Said() const;
  [[nodiscard]] long ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;
  [[nodiscard]] double CpuSeconds() const;

  /// SIGKILL, and waits until it is gone.
  void Kill();
  /// On the same ports. Throws, with what it said, if it does not come up.
  void Start();
  void Signal(int signal) const;

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
  MoreDoors doors_;
  int api_ = 0;
  int admin_ = 0;
  pid_t pid_ = -1;
  int ended_ = 0;  ///< As waitpid told it.
};

/// Some tidegate processes with one configuration.
class Fleet {
 public:
  struct Options {
    std::string yaml = {};  ///< Without `listen`.
    int nodes = 3;
    int threads = 1;
    bool resp = false;  ///< With that door.
  };
  explicit Fleet(const Options& options);

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  Node& operator[](std::size_t node) { return *nodes_[node]; }
  [[nodiscard]] std::vector<int> Apis() const;
  [[nodiscard]] bool AllAlive();
  /// Over all nodes.
  [[nodiscard]] double Metric(std::string_view name, std::string_view label = {}) const;
  [[nodiscard]] long ResidentBytes() const;
  [[nodiscard]] int Descriptors() const;
  [[nodiscard]] std::string Said() const;
  /// The lines of /metrics about what was not the store's, and why, as far as they are not 0.
  [[nodiscard]] std::string Failures() const;

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tidegate::redis_test
