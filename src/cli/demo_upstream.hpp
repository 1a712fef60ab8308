// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace tidegate::cli {

/// What the demo's gateway stands in front of: a small server of this process, on a free port of
/// this machine. Tells what it was asked; takes its time for /jobs, and says what /chat cost.
class DemoUpstream {
 public:
  DemoUpstream();
  ~DemoUpstream();
  DemoUpstream(const DemoUpstream&) = delete;
  DemoUpstream& operator=(const DemoUpstream&) = delete;

  [[nodiscard]] std::string url() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidegate::cli
