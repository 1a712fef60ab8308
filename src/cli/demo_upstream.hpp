// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace tidegate::cli {

/// The upstream of the demo's gateway: a small server in this process, on a free loopback port.
/// Answers with the request that it received; delays /jobs, and reports a cost for /chat.
class DemoUpstream {
 public:
  DemoUpstream();
  ~DemoUpstream();
  DemoUpstream(const DemoUpstream&) = delete;
  DemoUpstream& operator=(const DemoUpstream&) = delete;

  /// Starts its thread. Connections wait until then.
  void Start();
  [[nodiscard]] std::string url() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::cli
