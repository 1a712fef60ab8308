// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidegate::cli {

/// As many descriptors as the system gives this process: each connection needs one. Returns how
/// many that are; 0: that is not known.
[[nodiscard]] std::uint64_t RaiseDescriptors();

/// What so many connections need: one each, and about ten per thread besides.
[[nodiscard]] std::uint64_t DescriptorsFor(std::size_t connections);

/// Says in the log that `given` are too few for them, if they are.
void WarnOfFewDescriptors(std::uint64_t given, std::size_t connections);

}  // namespace tidegate::cli
