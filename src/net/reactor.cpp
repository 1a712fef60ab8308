// SPDX-License-Identifier: Apache-2.0
#include "net/reactor.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <limits>
#include <span>
#include <stdexcept>

namespace tidegate::net {

using namespace std::chrono_literals;

namespace {

void Pin(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  // If the system forbids it, the thread runs on any CPU: slower, but not wrong.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

Reactor::Reactor(const Deadlines::Durations& deadlines)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      deadlines_(deadlines) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (!epoll_ || !wake_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    throw std::runtime_error("cannot create an event loop: are there too many open files?");
  }
}

Reactor::~Reactor() { DeleteBuried(); }

bool Reactor::Watch(int fd, Watcher& watcher) noexcept {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watcher;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  return errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Reactor::Wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Reactor::RunTasks() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) task();
}

void Reactor::RunAgain() {
  running_.clear();
  running_.swap(again_);
  for (Watcher* const watcher : running_) {
    watcher->again_ = false;
    // A watcher earlier in this list may have buried this one.
    if (std::ranges::find(buried_, watcher) == buried_.end()) watcher->OnReady(0);
  }
}

std::optional<std::chrono::nanoseconds> Reactor::Timeout() const noexcept {
  if (!again_.empty()) return std::chrono::nanoseconds{0};
  // Deadlines are coarse: a deadline that was just missed is not worth a separate wake-up.
  auto next = deadlines_.Next();
  if (next) *next += std::chrono::milliseconds{10};
  if (const auto timer = timers_.Next(); timer && (!next || *timer < *next)) next = timer;
  if (!next) return std::nullopt;
  return std::max<std::chrono::nanoseconds>(*next - Deadlines::Clock::now(), {});
}

/// epoll_pwait2 is exact to some tens of microseconds; epoll_wait rounds up to milliseconds.
int Reactor::Wait(Events& events) noexcept {
  const auto wait = Timeout();
  if (has_pwait2_) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait.value_or(0ns));
    const timespec limit{.tv_sec = seconds.count(),
                         .tv_nsec = (wait.value_or(0ns) - seconds).count()};
    const int count =
        epoll_pwait2(epoll_.get(), events.data(), kEvents, wait ? &limit : nullptr, nullptr);
    if (count >= 0 || errno != ENOSYS) return count;
    has_pwait2_ = false;
  }
  constexpr auto kLongest = std::chrono::milliseconds{std::numeric_limits<int>::max()};
  const auto millis = wait ? std::chrono::ceil<std::chrono::milliseconds>(*wait) : -1ms;
  return epoll_wait(epoll_.get(), events.data(), kEvents,
                    static_cast<int>(std::min(millis, kLongest).count()));
}

void Reactor::Run(std::optional<int> core) {
  if (core) Pin(*core);
  // SIGPIPE is blocked, because OpenSSL writes without MSG_NOSIGNAL.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  Events events;
  auto deadlines_at = Deadlines::Clock::now();
  while (!stopped_.load(std::memory_order_relaxed)) {
    events_ = Wait(events);
    const std::span<const epoll_event> ready(events.data(),
                                             static_cast<std::size_t>(std::max(events_, 0)));
    now_ = Deadlines::Clock::now();
    ++round_;
    for (const epoll_event& event : ready) {
      if (event.data.ptr == nullptr) continue;
      static_cast<Watcher*>(event.data.ptr)->pending_events_ = event.events;
    }
    for (const epoll_event& event : ready) {
      if (event.data.ptr == nullptr) {
        RunTasks();
        continue;
      }
      Watcher& watcher = *static_cast<Watcher*>(event.data.ptr);
      watcher.pending_events_ = 0;
      watcher.OnReady(event.events);
    }
    if (!again_.empty()) RunAgain();
    // Deadlines are checked a hundred times a second at most, however busy the loop is.
    const auto now = Deadlines::Clock::now();
    timers_.Run(now);
    if (now >= deadlines_at || ready.empty()) {
      deadlines_.Run(now);
      deadlines_at = now + std::chrono::milliseconds{10};
    }
    if (!buried_.empty()) DeleteBuried();
  }
}

}  // namespace tidegate::net
