// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <type_traits>

namespace tidegate {

/// A vector that stores up to N elements in the object itself. More elements are allocated from
/// `memory`, which must outlive the vector. Clear costs three stores: elements have no destructor.
template <class T, std::size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit InlineVector(std::pmr::memory_resource& memory) noexcept : memory_(memory) {}
  InlineVector(const InlineVector&) = delete;
  InlineVector& operator=(const InlineVector&) = delete;

  void push_back(const T& element) {
    const T copy = element;  // `element` may be inside this vector.
    if (size_ == capacity_) [[unlikely]]
      Grow(size_ * 2);
    std::construct_at(data_ + size_++, copy);
  }
  /// New elements are value-initialised.
  void resize(std::size_t size) {
    if (size > capacity_) Grow(size);
    for (std::size_t i = size_; i < size; ++i) std::construct_at(data_ + i);
    size_ = size;
  }
  /// Removes all elements. Memory that Grow allocated is not freed here; `memory` still owns it.
  void Clear() noexcept {
    data_ = own();
    size_ = 0;
    capacity_ = N;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] T& front() noexcept { return data_[0]; }
  [[nodiscard]] const T& front() const noexcept { return data_[0]; }
  [[nodiscard]] std::span<T> all() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const T> all() const noexcept { return {data_, size_}; }

 private:
  [[nodiscard]] T* own() noexcept { return reinterpret_cast<T*>(own_.data()); }
  void Grow(std::size_t capacity) {
    auto* const larger = static_cast<T*>(memory_.allocate(capacity * sizeof(T), alignof(T)));
    std::uninitialized_copy_n(data_, size_, larger);
    data_ = larger;
    capacity_ = capacity;
  }

  std::pmr::memory_resource& memory_;
  T* data_ = own();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  alignas(T) std::array<std::byte, N * sizeof(T)> own_;
};

}  // namespace tidegate
