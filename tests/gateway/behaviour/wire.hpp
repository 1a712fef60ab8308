// SPDX-License-Identifier: Apache-2.0
// What upstreams and clients of these tests share.
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

/// Something that one thread waits for and another tells.
class Signal {
 public:
  void Give();
  /// False: it did not arrive within kPatience.
  [[nodiscard]] bool Wait();
  [[nodiscard]] bool given() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

/// Bytes that no compression or repetition explains, the same for each seed.
[[nodiscard]] std::string RandomBytes(std::size_t count, unsigned seed = 1);
/// In chunks of that size.
[[nodiscard]] std::string Chunked(std::string_view body, std::size_t chunk,
                                  std::string_view trailers = {});

}  // namespace tidegate::behaviour
