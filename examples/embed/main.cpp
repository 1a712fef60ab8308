// SPDX-License-Identifier: Apache-2.0
// A token bucket for one caller: three requests at once, then two a second.
#include <iostream>
#include <tidegate/limiter.hpp>

int main() {
  tidegate::Limiter login(tidegate::Quota::PerSecond(2).Burst(3));
  for (int request = 1; request <= 5; ++request) {
    const auto d = login.Check("alice");
    std::cout << "request " << request << (d.allowed ? ": allowed, " : ": denied, ");
    if (d.allowed) std::cout << d.remaining << " left\n";
    if (!d.allowed) std::cout << "try again in " << d.retry_after.count() << " us\n";
  }
}
