// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "store/fingerprint.hpp"
#include "tidegate/call.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// Sets what equal calls are known by: the same list of keys, slot tags, quotas, costs and leases.
/// The Error: two charges name the same key, whatever their slot tags. While Redis does not answer,
/// the memory store may have to answer the same request, and it ignores slot tags.
[[nodiscard]] std::optional<Error> Identify(const Fingerprinter& fingerprinter, Call& call);

}  // namespace tidegate
