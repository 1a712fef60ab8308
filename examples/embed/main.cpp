// SPDX-License-Identifier: Apache-2.0
// A token bucket for one caller: three requests at once, then two a second.
#include <iostream>
#include <tidegate/limiter.hpp>

int main() {
  using namespace std::chrono_literals;
  const auto quota = tidegate::Quota::Make({.limit = 2, .period = 1s, .burst = 3});
  if (!quota) {
    std::cerr << quota.error().message << '\n';
    return 1;
  }

  tidegate::Limiter limiter;
  for (int request = 1; request <= 5; ++request) {
    const auto decision = limiter.Decide("login", "alice", *quota);
    if (!decision) {
      std::cerr << decision.error().message << '\n';
      return 1;
    }
    if (decision->allowed) {
      std::cout << "request " << request << ": allowed, " << decision->remaining << " left\n";
    } else {
      std::cout << "request " << request << ": denied, try again after "
                << decision->retry_after.count() << " us\n";
    }
  }
}
