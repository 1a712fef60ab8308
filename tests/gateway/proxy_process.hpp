// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tidegate::gateway_test {

/// A port on 127.0.0.1 that was free a moment ago.
[[nodiscard]] int FreePort();

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
  ~ProxyProcess();
  ProxyProcess(const ProxyProcess&) = delete;
  ProxyProcess& operator=(const ProxyProcess&) = delete;

  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Whether it still runs.
  [[nodiscard]] bool alive();
  /// All that it said so far.
  [[nodiscard]] std::string Said() const;
  /// From now on it keeps its connections and answers nothing.
  void Pause();
  /// Kills it; returns when it is gone.
  void End();

 private:
  explicit ProxyProcess(std::string name, int port = FreePort());
  /// Writes `config` into the folder and starts `arguments`; waits until it passes on a request for
  /// `/ready`.
  void Start(const std::string& config, const std::vector<std::string>& arguments);
  void Launch(const std::vector<std::string>& arguments);
  void AwaitAnswer();

  std::string name_;
  std::filesystem::path folder_;
  int port_ = 0;
  pid_t pid_ = -1;
};

/// A blocking connection to 127.0.0.1:`port`, or -1. `from`: another loopback address to come from,
/// as 127.0.0.9.
[[nodiscard]] int ConnectTo(int port, const std::string& from = {});

}  // namespace tidegate::gateway_test
