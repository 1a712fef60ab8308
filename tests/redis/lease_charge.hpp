// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/charge.hpp"
#include "tidegate/quota.hpp"

namespace tidegate::redis_test {

[[nodiscard]] inline Quota Of(const QuotaSpec& spec) { return Quota::Make(spec).value(); }

/// Returns a charge of one lease under the key `c:db`; it is denied while Redis does not answer.
[[nodiscard]] inline Charge Lease(const Quota& quota, std::string_view id) {
  return {.rule = "c",
          .identity = "db",
          .quota = &quota,
          .lease = id,
          .on_failure = OnFailure::kClosed};
}

}  // namespace tidegate::redis_test
