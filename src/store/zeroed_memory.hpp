// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

#include "tidegate/store.hpp"

namespace tidegate {

/// Zeroed memory from the system. Pages that are never touched cost nothing; with huge ones, where
/// the system has them, a look-up in a large table saves a walk through the page tables, and a page
/// is 2 MiB.
class ZeroedMemory {
 public:
  ZeroedMemory(std::size_t bytes, Pages pages)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    if (pages == Pages::kHuge) (void)madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~ZeroedMemory() { munmap(data_, bytes_); }
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;

  [[nodiscard]] void* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace tidegate
