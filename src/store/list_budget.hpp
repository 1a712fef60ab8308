// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tidegate {

/// Whether a list is limited by the budget. Lists of overflow buckets are not: they are needed when
/// the budget is spent, and there are few of them.
enum class Spend : bool { kBudget, kReserve };

/// Allocates logs and leases, up to a number of bytes. A block is a List header (sliding_log::Log
/// or concurrency::Leases) with its items behind it.
class ListBudget {
 public:
  explicit ListBudget(std::size_t most) noexcept : most_(most) {}

  /// Returns true if New would stay within the budget.
  template <class List>
  [[nodiscard]] bool Has(std::uint32_t capacity, Spend spend) const noexcept {
    return spend == Spend::kReserve || used() + Bytes<List>(capacity) <= most_;
  }

  /// Returns a new list; null if the budget is spent or the machine has no more memory.
  template <class List>
  [[nodiscard]] List* New(std::uint32_t capacity, Spend spend) noexcept {
    using Item = typename List::Item;
    static_assert(sizeof(List) % alignof(Item) == 0);
    const std::size_t bytes = Bytes<List>(capacity);
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_ &&
        spend == Spend::kBudget) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    void* memory = std::malloc(bytes);
    if (memory == nullptr) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    auto* items = reinterpret_cast<Item*>(static_cast<std::byte*>(memory) + sizeof(List));
    return new (memory) List(items, capacity);
  }

  template <class List>
  void Delete(List* list) noexcept {
    if (list == nullptr) return;
    used_.fetch_sub(Bytes<List>(list->capacity()), std::memory_order_relaxed);
    std::free(list);
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  template <class List>
  static std::size_t Bytes(std::uint32_t capacity) noexcept {
    return sizeof(List) + std::size_t{capacity} * sizeof(typename List::Item);
  }

  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace tidegate
