// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace tidegate::net {

/// Bytes on their way out. Grows, never shrinks, and is written again and again.
class OutBuffer {
 public:
  OutBuffer() = default;

  void Clear() noexcept { size_ = 0; }
  /// What lies behind is taken back.
  void Truncate(std::size_t size) noexcept { size_ = size; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::string_view view() const noexcept { return {data_.get(), size_}; }

  OutBuffer& operator<<(std::string_view text) {
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

  /// Room for `bytes` more; what is written there counts after Advance.
  [[nodiscard]] char* Reserve(std::size_t bytes) {
    if (capacity_ - size_ < bytes) Grow(bytes);
    return data_.get() + size_;
  }
  void Advance(std::size_t bytes) noexcept { size_ += bytes; }

 private:
  void Grow(std::size_t bytes) {
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

}  // namespace tidegate::net
