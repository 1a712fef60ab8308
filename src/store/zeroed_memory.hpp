// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace tidegate {

/// Zeroed memory from the system. Pages that are never touched cost nothing.
class ZeroedMemory {
 public:
  explicit ZeroedMemory(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
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
