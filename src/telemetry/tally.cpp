// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tally.hpp"

namespace tidegate {

Tally::Tally(net::Timers& timers, const Options& options)
    : options_(options),
      hot_keys_(options.hot_keys == 0 ? nullptr
                                      : std::make_unique<HotKeys>(timers, options.hot_keys)) {}

std::shared_ptr<const HotReport> Tally::hot() const {
  static const auto kNone = std::make_shared<const HotReport>();
  return hot_keys_ == nullptr ? kNone : hot_keys_->Published();
}

}  // namespace tidegate
