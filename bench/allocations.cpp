// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

namespace {
thread_local std::uint64_t allocations = 0;
}  // namespace

std::uint64_t AllocationsOfThisThread() noexcept { return allocations; }

// glibc's own entry point, so that this malloc() need not look up the original one.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
