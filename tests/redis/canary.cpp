// SPDX-License-Identifier: Apache-2.0
#include "redis/canary.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tidegate::redis_test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kEveryUs = 2000;
/// Delay that a timer or a time slice may have on a machine that is not overloaded, with some
/// margin.
constexpr std::int64_t kToleratedUs = 2000;
/// Threads start and end: look for new ones every 25 rounds, which is every 50 ms.
constexpr int kFindEvery = 25;

}  // namespace

Canary::Canary() : thread_([this] { Run(); }) {}

Canary::~Canary() {
  Stop();
  for (const auto& [id, task] : tasks_) close(task.fd);
}

void Canary::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Canary::Run() {
  std::int64_t due = SteadyMicros();
  for (int turn = 0; !stop_; ++turn) {
    if (turn % kFindEvery == 0) Find();
    due += kEveryUs;
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point(std::chrono::microseconds(due)));
    const std::int64_t now = SteadyMicros();
    std::int64_t waited_us = now - due;
    for (auto it = tasks_.begin(); it != tasks_.end();) {
      const std::int64_t waited_ns = WaitedNs(it->second);
      if (waited_ns >= 0) {
        waited_us = std::max(waited_us, waited_ns / 1000);
        ++it;
      } else {
        close(it->second.fd);
        it = tasks_.erase(it);
      }
    }
    // The kernel counts the waiting time only when it ends. So the wait began `waited_us` ago, or
    // since the previous reading.
    if (waited_us > kToleratedUs) late_.push_back({now - waited_us - kEveryUs, now});
    due = std::max(due, now - kEveryUs);
  }
}

void Canary::Find() {
  FindTasks(getpid());
  std::error_code gone;
  for (const auto& task : fs::directory_iterator("/proc/self/task", gone)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) FindTasks(child);
  }
}

void Canary::FindTasks(pid_t pid) {
  std::error_code gone;
  const fs::path folder = "/proc/" + std::to_string(pid) + "/task";
  for (auto it = fs::directory_iterator(folder, gone); !gone && it != fs::directory_iterator();
       it.increment(gone)) {
    const std::string name = it->path().filename().string();
    pid_t id = 0;
    std::from_chars(name.data(), name.data() + name.size(), id);
    if (tasks_.contains(id)) continue;
    const int fd = open((it->path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) tasks_[id].fd = fd;
  }
}

std::int64_t Canary::WaitedNs(Task& task) {
  // `schedstat` contains: time on the CPU, time waiting for a CPU (both in nanoseconds), number of
  // time slices.
  std::array<char, 96> text{};
  const ssize_t got = pread(task.fd, text.data(), text.size() - 1, 0);
  if (got <= 0) return -1;
  char* waiting = nullptr;
  (void)std::strtoll(text.data(), &waiting, 10);
  const std::int64_t total = std::strtoll(waiting, nullptr, 10);
  const std::int64_t since = task.waited_ns < 0 ? 0 : total - task.waited_ns;
  task.waited_ns = total;
  return since;
}

Records Canary::Undisturbed(const Records& records) const {
  Records undisturbed;
  for (const Record& record : records) {
    // `late_` is sorted by end; a long interval may begin before the intervals in front of it.
    auto after =
        std::lower_bound(late_.begin(), late_.end(), record.sent_us,
                         [](const Late& late, std::int64_t sent) { return late.to_us < sent; });
    bool disturbed = false;
    for (; after != late_.end() && !disturbed; ++after) {
      disturbed = after->from_us <= record.received_us();
      if (after->to_us - record.received_us() > 1'000'000) break;
    }
    if (!disturbed) undisturbed.push_back(record);
  }
  return undisturbed;
}

std::int64_t Canary::LateMicros(std::int64_t from_us, std::int64_t to_us) const {
  std::int64_t total = 0;
  std::int64_t counted = from_us;
  for (const Late& late : late_) {
    const std::int64_t begin = std::max(late.from_us, counted);
    const std::int64_t end = std::min(late.to_us, to_us);
    if (end <= begin) continue;
    total += end - begin;
    counted = end;
  }
  return total;
}

}  // namespace tidegate::redis_test
