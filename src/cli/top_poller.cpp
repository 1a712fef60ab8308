// SPDX-License-Identifier: Apache-2.0
#include "cli/top_poller.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tidegate::cli {

using std::chrono::steady_clock;

TopPoller::TopPoller(AdminClient client, Micros every)
    : client_(std::move(client)),
      every_(every),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  client_.CancelBy(stop_.get());
  thread_ = std::thread([this] { Run(); });
}

TopPoller::~TopPoller() {
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
}

std::optional<Asked<TopSample>> TopPoller::Take() {
  eventfd_t count = 0;
  (void)eventfd_read(ready_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(newest_, std::nullopt);
}

void TopPoller::Run() {
  auto due = steady_clock::now();
  for (;;) {
    auto answer = TakeSample(client_);
    {
      const std::lock_guard lock(mutex_);
      newest_ = std::move(answer);
    }
    (void)eventfd_write(ready_.get(), 1);
    due = std::max(due + every_, steady_clock::now());
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(due - steady_clock::now()).count();
    pollfd stop{stop_.get(), POLLIN, 0};
    // A signal only makes this one come early.
    if (poll(&stop, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 86'400'000))) > 0) return;
  }
}

}  // namespace tidegate::cli
