// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tidegate {

/// Whether a list counts against the budget. Overflow buckets do not: they are
/// what is left when it is spent, and there are few of them.
enum class Spend : bool { kBudget, kReserve };

/// Memory for logs and leases, up to a number of bytes. A block is a List header
/// (sliding_log::Log or concurrency::Leases) with its items behind it.
class ListBudget {
 public:
  explicit ListBudget(std::size_t most) noexcept : most_(most) {}

  /// Whether New would have the budget.
  template <class List, class Item>
  [[nodiscard]] bool Has(std::uint32_t capacity, Spend spend) const noexcept {
    return spend == Spend::kReserve || used() + Bytes<List, Item>(capacity) <= most_;
  }

  /// Null where the budget or the machine has no more.
  template <class List, class Item>
  [[nodiscard]] List* New(std::uint32_t capacity, Spend spend) noexcept {
    static_assert(sizeof(List) % alignof(Item) == 0);
    const std::size_t bytes = Bytes<List, Item>(capacity);
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

  template <class List, class Item>
  void Delete(List* list) noexcept {
    if (list == nullptr) return;
    used_.fetch_sub(Bytes<List, Item>(list->capacity()), std::memory_order_relaxed);
    std::free(list);
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  template <class List, class Item>
  static std::size_t Bytes(std::uint32_t capacity) noexcept {
    return sizeof(List) + std::size_t{capacity} * sizeof(Item);
  }

  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace tidegate
