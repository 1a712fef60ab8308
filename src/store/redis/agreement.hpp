// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "store/redis/client.hpp"
#include "tidegate/error.hpp"

namespace tidegate::redis {

/// Waits for Redis on the calling thread, `patience` at most, and agrees with the fleet on its HMAC
/// key: `candidate` if there is none yet. The Error says why that did not work.
[[nodiscard]] Result<std::string> AgreeOnSecret(const Client::Options& redis,
                                                const std::string& candidate,
                                                std::chrono::milliseconds patience);

}  // namespace tidegate::redis
