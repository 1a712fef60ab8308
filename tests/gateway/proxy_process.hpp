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

/// A proxy as a child process on a free port of 127.0.0.1, in front of one upstream. The destructor
/// ends the process.
class ProxyProcess {
 public:
  /// Starts nginx or HAProxy. Returns nullptr if the program is not installed; throws if it does
  /// not start.
  static std::unique_ptr<ProxyProcess> Nginx(int upstream_port);
  static std::unique_ptr<ProxyProcess> Haproxy(int upstream_port);
  /// Starts Tidegate. `binary`: path of the tidegate program. `more`: additional lines of its
  /// configuration.
  static std::unique_ptr<ProxyProcess> Tidegate(const std::string& binary, int upstream_port,
                                                const std::string& more = {});
  /// Starts any program with its own files, which must serve HTTP on `port`. The word FOLDER in the
  /// files and in the arguments stands for the folder with the files. The first argument is the
  /// name of the program.
  static std::unique_ptr<ProxyProcess> Other(int port,
                                             const std::map<std::string, std::string>& files,
                                             std::vector<std::string> arguments);
  [[nodiscard]] static bool Installed(const std::string& program);

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns true if the program still runs.
  [[nodiscard]] bool alive() { return process_.alive(); }
  /// Returns the output of the program so far.
  [[nodiscard]] std::string Output() const { return test::ReadFile(folder_ / "log"); }
  /// Suspends the process: it keeps its connections but sends no response any more.
  void Pause() const { process_.Pause(); }
  /// Kills the process, because proxies may wait for open connections after SIGTERM.
  void End() { process_.Kill(); }

 private:
  explicit ProxyProcess(std::string name, int port = test::FreePort());
  /// Writes `config` into the folder, starts `arguments`, and waits until the proxy forwards a
  /// request for `/ready`.
  void Start(const std::string& config, const std::vector<std::string>& arguments);
  void Launch(const std::vector<std::string>& arguments);

  std::string name_;
  test::TemporaryFolder folder_;
  int port_ = 0;
  test::ChildProcess process_;
};

}  // namespace tidegate::gateway_test
