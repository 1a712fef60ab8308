// SPDX-License-Identifier: Apache-2.0
// Writes the clock offset that clock_shim.cpp reads.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include "redis/clock_shim.hpp"

namespace tidegate::redis_test {

ClockShim::ClockShim() : file_((folder_.path() / "offset").string()) {
  const int fd = open(file_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(std::int64_t)) != 0) {
    throw std::runtime_error("cannot create the file with the clock offset");
  }
  void* const at = mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) throw std::runtime_error("cannot map the file with the clock offset");
  mapped_ = static_cast<std::int64_t*>(at);
}

ClockShim::~ClockShim() { munmap(mapped_, sizeof(std::int64_t)); }

std::vector<std::string> ClockShim::environment() const {
  return {"LD_PRELOAD=" TIDEGATE_CLOCK_SHIM, "TIDEGATE_CLOCK_OFFSET=" + file_};
}

void ClockShim::Set(std::chrono::microseconds offset) {
  std::atomic_ref(*mapped_).store(offset.count());
}

std::chrono::microseconds ClockShim::offset() const {
  return std::chrono::microseconds(std::atomic_ref(*mapped_).load());
}

}  // namespace tidegate::redis_test
