// SPDX-License-Identifier: Apache-2.0
// Helpers that the upstreams and the clients of the behaviour tests share.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/http_client.hpp"
#include "support/wait.hpp"

namespace tidegate::behaviour {

using test::HttpFields;
using test::HttpRequest;
using test::HttpResponse;
using test::kPatience;

/// An event that one thread signals with Give() and another waits for with Wait().
class Signal {
 public:
  void Give();
  /// Returns false if no thread calls Give() within kPatience.
  [[nodiscard]] bool Wait();
  [[nodiscard]] bool given() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

/// Returns `count` random bytes, which are the same for each seed.
[[nodiscard]] std::string RandomBytes(std::size_t count, unsigned seed = 1);
/// Returns `body` with chunked transfer coding, in chunks of `chunk` bytes.
[[nodiscard]] std::string Chunked(std::string_view body, std::size_t chunk,
                                  std::string_view trailers = {});

}  // namespace tidegate::behaviour
