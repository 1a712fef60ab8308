// SPDX-License-Identifier: Apache-2.0
// Preloaded into a redis-server to shift its wall clock by an offset. The test writes the offset to
// the file that TIDEGATE_CLOCK_OFFSET names (eight bytes, microseconds; see clock_shim.hpp).
// Monotonic clocks are unchanged, as with a real step of the wall clock.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr std::int64_t kMillion = 1'000'000;

/// Returns the offset in microseconds; 0 if there is no file. The first call maps the file, before
/// the server starts other threads.
std::int64_t Offset() {
  static const std::int64_t* const mapped = [] {
    const char* const name = getenv("TIDEGATE_CLOCK_OFFSET");
    const int fd = name == nullptr ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return static_cast<const std::int64_t*>(nullptr);
    void* const at = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<const std::int64_t*>(at);
  }();
  return mapped == nullptr ? 0 : __atomic_load_n(mapped, __ATOMIC_ACQUIRE);
}

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool IsWallClock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the parameter names in the
// system headers are reserved.
int clock_gettime(clockid_t clock, timespec* at) noexcept {
  static const auto real = Real<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, at);
  if (result != 0 || !IsWallClock(clock)) return result;
  const std::int64_t micros = at->tv_sec * kMillion + at->tv_nsec / 1000 + Offset();
  at->tv_nsec = micros % kMillion * 1000 + at->tv_nsec % 1000;
  at->tv_sec = micros / kMillion;
  return 0;
}

int gettimeofday(timeval* at, void* zone) noexcept {
  static const auto real = Real<int (*)(timeval*, void*)>("gettimeofday");
  const int result = real(at, zone);
  if (result != 0) return result;
  const std::int64_t micros = at->tv_sec * kMillion + at->tv_usec + Offset();
  at->tv_sec = micros / kMillion;
  at->tv_usec = micros % kMillion;
  return 0;
}

time_t time(time_t* at) noexcept {
  timeval now{};
  gettimeofday(&now, nullptr);
  if (at != nullptr) *at = now.tv_sec;
  return now.tv_sec;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
}  // extern "C"
