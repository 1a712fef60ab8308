// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "store/redis/endpoint.hpp"
#include "store/redis/slot.hpp"

namespace tidegate::redis {

/// Where Redis Cluster says that a slot is served: for good (MOVED), or the key that was asked for
/// while its slot is on its way (ASK).
struct Redirect {
  enum class Kind : std::uint8_t { kMoved, kAsk };
  Kind kind = Kind::kMoved;
  Slot slot = 0;
  Endpoint to;  ///< An empty host: that of whoever says so.

  friend bool operator==(const Redirect&, const Redirect&) = default;
};

/// `MOVED 3999 10.0.0.7:6381`, `ASK 3999 fd00::7:6381`, `MOVED 3999 :6381`, also where `?` stands
/// for a host that the node does not know. Nothing: it is no such error, or makes no sense.
[[nodiscard]] std::optional<Redirect> ReadRedirect(std::string_view error);

}  // namespace tidegate::redis
