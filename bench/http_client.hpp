// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// A keep-alive connection to 127.0.0.1 whose caller waits for each response.
class HttpClient {
 public:
  explicit HttpClient(int port);

  /// Sends a request and returns the whole response. Throws if its status is not 200.
  std::string Ask(const std::string& request);
  /// Returns true if the connection is open and has no bytes to read.
  [[nodiscard]] bool idle() const;

 private:
  net::Descriptor fd_;
};

}  // namespace tidegate::bench
