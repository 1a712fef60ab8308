// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "store/fingerprint.hpp"
#include "tidegate/call.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Sets what equal calls are known by: the same list of keys, quotas, costs and leases. The Error:
/// two charges name the same key.
[[nodiscard]] std::optional<Error> Identify(const Fingerprinter& fingerprinter, Call& call);

}  // namespace tidegate
