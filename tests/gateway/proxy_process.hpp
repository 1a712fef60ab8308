// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/files.hpp"
#include "support/ports.hpp"

namespace tidegate::gateway_test {

/// A proxy as a process of its own on a free port of 127.0.0.1, in front of one upstream. Ended
/// with the object.
class ProxyProcess {
 public:
  /// Each is nullptr where the program is not installed, and throws where it does not come up.
  static std::unique_ptr<ProxyProcess> Nginx(int upstream_port);
  static std::unique_ptr<ProxyProcess> Haproxy(int upstream_port);
  /// `binary`: of tidegate. `more`: further lines of its configuration.
  static std::unique_ptr<ProxyProcess> Tidegate(const std::string& binary, int upstream_port,
                                                const std::string& more = {});
  /// Any program with files of its own; it must answer HTTP on `port`. FOLDER stands for its folder
  /// in them and in the arguments, of which the first is the program's name.
  static std::unique_ptr<ProxyProcess> Other(int port,
                                             const std::map<std::string, std::string>& files,
                                             std::vector<std::string> arguments);
  [[nodiscard]] static bool Installed(const std::string& program);

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns true if the program still runs.
  [[nodiscard]] bool alive() { return process_.alive(); }
  /// Returns the output of the program so far.
  [[nodiscard]] std::string Said() const { return test::ReadFile(folder_ / "log"); }
  /// From now on it keeps its connections and answers nothing.
  void Pause() const { process_.Pause(); }
  /// Kills it, because proxies may wait at SIGTERM for open connections.
  void End() { process_.Kill(); }

 private:
  explicit ProxyProcess(std::string name, int port = test::FreePort());
  /// Writes `config` into the folder and starts `arguments`; waits until it passes on a request for
  /// `/ready`.
  void Start(const std::string& config, const std::vector<std::string>& arguments);
  void Launch(const std::vector<std::string>& arguments);

  std::string name_;
  test::TemporaryFolder folder_;
  int port_ = 0;
  test::ChildProcess process_;
};

}  // namespace tidegate::gateway_test
