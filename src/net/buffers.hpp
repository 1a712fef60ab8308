// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace tidegate::net {

/// Limits the bytes that all connections of a process hold while they wait for clients: incomplete
/// requests and commands, and HTTP responses that clients have not read. Small buffers do not
/// count. Thread-safe.
class BufferBudget {
 public:
  explicit BufferBudget(std::size_t limit) noexcept : limit_(limit) {}

  /// The kind of bytes. kChecked is the body of an HTTP request whose caller has the needed rights.
  /// All other bytes are kUnchecked, and are taken only while at most half of the budget is in use.
  enum class Use : std::uint8_t { kUnchecked, kChecked };

  /// Takes `bytes` from the budget. Returns false, and takes nothing, if there is no room.
  [[nodiscard]] bool Take(std::size_t bytes, Use use) noexcept {
    const std::size_t limit = use == Use::kChecked ? limit_ : limit_ / 2;
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before + bytes <= limit) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  /// Changes `held`, the number of bytes that an owner has taken, to `bytes`, and takes or returns
  /// the difference. Returns false, and changes nothing, if the budget has no room.
  [[nodiscard]] bool Adjust(std::size_t& held, std::size_t bytes, Use use) noexcept {
    if (bytes > held && !Take(bytes - held, use)) return false;
    if (bytes < held) Return(held - bytes);
    held = bytes;
    return true;
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

/// A buffer of bytes to send. It grows, never shrinks, and is used for one message after another.
class OutBuffer {
 public:
  OutBuffer() = default;

  void Clear() noexcept { size_ = 0; }
  /// Removes the bytes from position `size` on.
  void Truncate(std::size_t size) noexcept { size_ = size; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data_.get(), size_}; }

  /// Always inlined: most texts are literals, for which the copy becomes a few instructions.
  [[gnu::always_inline]] OutBuffer& operator<<(std::string_view text) {
    char* const to = Reserve(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  OutBuffer& operator<<(char c) {
    *Reserve(1) = c;
    ++size_;
    return *this;
  }
  template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
  OutBuffer& operator<<(T number) {
    char* const to = Reserve(20);
    size_ += static_cast<std::size_t>(std::to_chars(to, to + 20, number).ptr - to);
    return *this;
  }

  /// Returns room for `bytes` more bytes. Call Advance after writing them.
  [[nodiscard]] char* Reserve(std::size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return data_.get() + size_;
  }
  void Advance(std::size_t bytes) noexcept { size_ += bytes; }

 private:
  [[gnu::noinline]] void Grow(std::size_t bytes) {
    std::size_t capacity = capacity_ < 4096 ? 4096 : capacity_ * 2;
    while (capacity - size_ < bytes) capacity *= 2;
    std::unique_ptr<char[]> data(new char[capacity]);
    if (size_ != 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// The unused buffers of one reactor. Connections give empty buffers back.
class BufferPool {
 public:
  /// The usual size of a block, which is the most that one read returns. It is enough for a request
  /// head, and large enough that the system calls for a long body do not matter (2 GiB: 131,072).
  static constexpr std::size_t kBlock = 16u << 10;

  /// `budget` limits the bytes that waiting channels hold (nullptr: no limit). It must outlive the
  /// pool.
  explicit BufferPool(BufferBudget* budget = nullptr, std::size_t block = kBlock) noexcept
      : budget_(budget), block_(block) {}

  [[nodiscard]] BufferBudget* budget() const noexcept { return budget_; }
  /// Returns the size of a block.
  [[nodiscard]] std::size_t block() const noexcept { return block_; }
  [[nodiscard]] std::unique_ptr<char[]> TakeBlock() {
    if (blocks_.empty()) return std::unique_ptr<char[]>(new char[block_]);
    auto block = std::move(blocks_.back());
    blocks_.pop_back();
    return block;
  }
  void GiveBlock(std::unique_ptr<char[]> block) noexcept {
    if (blocks_.capacity() == 0) blocks_.reserve(kKept);
    if (blocks_.size() < kKept) blocks_.push_back(std::move(block));
  }
  [[nodiscard]] std::unique_ptr<OutBuffer> TakeOut() {
    if (outs_.empty()) return std::make_unique<OutBuffer>();
    auto out = std::move(outs_.back());
    outs_.pop_back();
    return out;
  }
  void GiveOut(std::unique_ptr<OutBuffer> out) noexcept;
  /// Frees all but a few of the unused buffers.
  void Trim() noexcept {
    if (blocks_.size() > kKeptByTrim) blocks_.resize(kKeptByTrim);
    if (outs_.size() > kKeptByTrim) outs_.resize(kKeptByTrim);
  }

 private:
  /// The most unused buffers that are kept: 4 MiB of blocks, and at most 4 MiB of output buffers.
  static constexpr std::size_t kKept = 256;
  static constexpr std::size_t kKeptOuts = 128;
  static constexpr std::size_t kKeptByTrim = 16;
  BufferBudget* budget_;
  const std::size_t block_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::unique_ptr<OutBuffer>> outs_;
};

}  // namespace tidegate::net
