// SPDX-License-Identifier: Apache-2.0
#include "redis/canary.hpp"

#include <algorithm>
#include <chrono>

namespace tidegate::redis_test {
namespace {

constexpr std::int64_t kEveryUs = 1000;
/// What a timer may be late on an idle machine, and a little.
constexpr std::int64_t kToleratedUs = 2000;

}  // namespace

Canary::Canary() {
  thread_ = std::thread([this] {
    std::int64_t due = SteadyMicros();
    while (!stop_) {
      due += kEveryUs;
      std::this_thread::sleep_until(
          std::chrono::steady_clock::time_point(std::chrono::microseconds(due)));
      const std::int64_t now = SteadyMicros();
      if (now - due > kToleratedUs) late_.push_back({due, now});
      due = std::max(due, now - kEveryUs);
    }
  });
}

Canary::~Canary() { Stop(); }

void Canary::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Records Canary::Undisturbed(const Records& records) const {
  Records undisturbed;
  for (const Record& record : records) {
    const auto after =
        std::lower_bound(late_.begin(), late_.end(), record.sent_us,
                         [](const Late& late, std::int64_t sent) { return late.to_us < sent; });
    if (after == late_.end() || after->from_us > record.received_us())
      undisturbed.push_back(record);
  }
  return undisturbed;
}

}  // namespace tidegate::redis_test
