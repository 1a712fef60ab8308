// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "child.hpp"
#include "http_load.hpp"

namespace tidegate::bench {

/// Where servers run that answer by themselves, and where their load does.
inline constexpr int kServerCore = 0;
inline constexpr int kLoadCore = 1;
inline constexpr int kHttpConnections = 64;

/// For configurations; gone at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  /// The file's path.
  [[nodiscard]] std::string Write(const std::string& name, const std::string& text) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A server and the requests that it is measured by.
class Contender {
 public:
  /// Starts it and connects to it. Each request is sent in its turn.
  Contender(std::string name, std::vector<std::string> command, int port,
            std::vector<std::string> requests);

  /// Throws where an answer is not 200.
  void Round(double seconds);
  void Warm() { (void)load_->Run(0.3); }

  [[nodiscard]] const std::string& name() const { return name_; }
  /// CPU time per request, one per round.
  [[nodiscard]] const std::vector<double>& micros() const { return micros_; }

 private:
  std::string name_;
  std::vector<std::string> requests_;
  Child server_;
  std::unique_ptr<HttpLoad> load_;
  std::vector<double> micros_;
};

/// `return` answers before limit_req decides; with try_files it is in force.
enum class NginxLimit { kReturn, kInForce };
/// nginx that limits by `key`, a variable of its own, and answers `ok` to everything.
[[nodiscard]] std::unique_ptr<Contender> StartNginx(const Folder& folder, NginxLimit limit,
                                                    const std::string& key,
                                                    std::vector<std::string> requests);
/// `yaml` without `listen`; it serves the API.
[[nodiscard]] std::unique_ptr<Contender> StartTidegate(const std::string& binary,
                                                       const Folder& folder, std::string name,
                                                       const std::string& yaml,
                                                       std::vector<std::string> requests);

/// Warms all, measures them in turns and shows the medians.
void RunContest(const std::string& label, const std::vector<std::unique_ptr<Contender>>& all,
                int rounds, double seconds);
/// Shows whether the first costs at most so many times what the second does.
[[nodiscard]] bool Bar(const char* what, const Contender& a, const Contender& b, double most);

}  // namespace tidegate::bench
