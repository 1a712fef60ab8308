// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "store/redis/endpoint.hpp"
#include "tidegate/error.hpp"

namespace tidegate::redis {

/// Sentinels are three or five, and a few nodes of a cluster know the others: more are a mistake.
inline constexpr std::size_t kMaxHosts = 64;

/// Reads `host[:port][,host[:port]...]`: names, IPv4 addresses and IPv6 ones in brackets, none of
/// them twice. The Error shows nothing of the text, as that of ParseRedisUrl.
[[nodiscard]] Result<std::vector<Endpoint>> ParseHostList(std::string_view text,
                                                          std::uint16_t default_port);

}  // namespace tidegate::redis
