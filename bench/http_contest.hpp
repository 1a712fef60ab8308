// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "child.hpp"
#include "http_load.hpp"

namespace tidegate::bench {

/// Cores of the servers and of the load generator.
inline constexpr int kServerCore = 0;
inline constexpr int kLoadCore = 1;
inline constexpr int kHttpConnections = 64;

/// A temporary folder for configurations, which the destructor removes.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// Writes a file and returns its path.
  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A server under measurement and the requests that are sent to it.
class Contender {
 public:
  /// Starts the server and connects to it. The load sends `requests` in turn.
  Contender(std::string name, std::vector<std::string> command, int port,
            std::vector<std::string> requests);

  /// Runs one round. Throws if a response is not 200.
  void Round(double seconds);
  void Warm() { (void)load_->Run(0.3); }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the microseconds of CPU time per request, one value for each round.
  [[nodiscard]] const std::vector<double>& micros() const { return micros_; }

 private:
  std::string name_;
  std::vector<std::string> requests_;
  Child server_;
  std::unique_ptr<HttpLoad> load_;
  std::vector<double> micros_;
};

/// Whether nginx answers with `return`, which runs before limit_req decides, or with try_files,
/// which leaves limit_req in force.
enum class NginxLimit { kReturn, kInForce };
/// Starts an nginx that limits by `key`, a variable of nginx, and answers `ok` to every request.
[[nodiscard]] std::unique_ptr<Contender> StartNginx(const Folder& folder, NginxLimit limit,
                                                    const std::string& key,
                                                    std::vector<std::string> requests);
/// Starts a tidegate that serves the API. `yaml`: its configuration without `listen`.
[[nodiscard]] std::unique_ptr<Contender> StartTidegate(const std::string& binary,
                                                       const Folder& folder, std::string name,
                                                       const std::string& yaml,
                                                       std::vector<std::string> requests);

/// Warms all servers up, measures them in turns and prints the medians.
void RunContest(const std::string& label, const std::vector<std::unique_ptr<Contender>>& all,
                int rounds, double seconds);
/// Prints and returns whether the cost of `a` is at most `most` times the cost of `b`.
[[nodiscard]] bool Bar(const char* what, const Contender& a, const Contender& b, double most);

}  // namespace tidegate::bench
