// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidegate::net {

/// Limits the bytes that all connections of a process together hold while they wait for a client:
/// incomplete requests and RESP commands, and HTTP responses that were not read yet. The small
/// buffer that every connection has is not counted. Thread-safe.
class BufferBudget {
 public:
  explicit BufferBudget(std::size_t limit) noexcept : limit_(limit) {}

  /// The kind of bytes. kChecked is the body of an HTTP request whose caller has the needed rights.
  /// All other bytes are kUnchecked, and are taken only while at most half of the budget is in use.
  enum class Use : std::uint8_t { kUnchecked, kChecked };

  /// Returns false if the budget does not have `bytes` left for this use; then nothing is taken.
  [[nodiscard]] bool Take(std::size_t bytes, Use use) noexcept {
    const std::size_t limit = use == Use::kChecked ? limit_ : limit_ / 2;
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before + bytes <= limit) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void Return(std::size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// Number of calls of Take that returned false.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace tidegate::net
