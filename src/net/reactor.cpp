// SPDX-License-Identifier: Apache-2.0
#include "net/reactor.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <utility>

namespace tidegate::net {
namespace {

void Pin(int core) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  // Where the system forbids it the thread runs wherever it is put: slower, not wrong.
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
    throw std::runtime_error("the system gives no event loop: are there too many open files?");
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

void Reactor::Stop() {
  stopped_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Reactor::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
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
    // Buried by one before it in this list?
    if (std::ranges::find(buried_, watcher) == buried_.end()) watcher->OnReady(0);
  }
}

void Reactor::Bury(Watcher* watcher) {
  if (watcher->again_) std::erase(again_, watcher);
  buried_.push_back(watcher);
}

void Reactor::DeleteBuried() {
  while (!buried_.empty()) {
    // A destructor may bury others.
    const std::vector<Watcher*> buried = std::exchange(buried_, {});
    for (Watcher* const watcher : buried) delete watcher;
  }
}

int Reactor::Timeout() const noexcept {
  if (!again_.empty()) return 0;
  // Deadlines are coarse: one that was just missed is not worth a wake-up of its own.
  auto next = deadlines_.Next();
  if (next) *next += std::chrono::milliseconds{10};
  if (const auto timer = timers_.Next(); timer && (!next || *timer < *next)) next = timer;
  if (!next) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*next - Deadlines::Clock::now());
  return static_cast<int>(
      std::clamp<std::int64_t>(wait.count(), 0, std::numeric_limits<int>::max()));
}

void Reactor::Run(std::optional<int> core) {
  if (core) Pin(*core);
  // OpenSSL writes without saying that it wants no signal.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  std::array<epoll_event, kEvents> events;
  auto deadlines_at = Deadlines::Clock::now();
  while (!stopped_.load(std::memory_order_relaxed)) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEvents, Timeout());
    now_ = Deadlines::Clock::now();
    events_ = count;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        RunTasks();
      } else {
        static_cast<Watcher*>(event.data.ptr)->OnReady(event.events);
      }
    }
    if (!again_.empty()) RunAgain();
    // Looked at a hundred times a second at most, however busy the loop is.
    const auto now = Deadlines::Clock::now();
    timers_.Run(now);
    if (now >= deadlines_at || count == 0) {
      deadlines_.Run(now);
      deadlines_at = now + std::chrono::milliseconds{10};
    }
    if (!buried_.empty()) DeleteBuried();
    exchanges_.Trim();
  }
}

}  // namespace tidegate::net
