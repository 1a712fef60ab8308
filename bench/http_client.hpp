// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "net/descriptor.hpp"

namespace tidegate::bench {

/// A keep-alive connection to 127.0.0.1 whose caller waits for each answer.
class HttpClient {
 public:
  explicit HttpClient(int port);

  /// The whole answer; of status 200, or it throws.
  std::string Ask(const std::string& request);
  /// Whether it is open, with nothing to be read.
  [[nodiscard]] bool idle() const;

 private:
  net::Descriptor fd_;
};

}  // namespace tidegate::bench
