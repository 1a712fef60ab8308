// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "net/http1_message.hpp"

namespace tidegate {

/// `Content-Type: application/json`, with or without parameters. A browser sends it to a foreign
/// origin only after asking, so no page can do it behind its reader's back.
[[nodiscard]] bool IsJson(const net::HttpHead& head) noexcept;

/// Which web page a request comes from, as its Origin says.
enum class Page : std::uint8_t {
  kNone,     ///< A program's.
  kOwn,      ///< One that was read from here, by an address: nobody else can have served it.
  kForeign,  ///< Another one's, or one whose name may have been made to lead here (DNS rebinding).
};
[[nodiscard]] Page PageOf(const net::HttpHead& head) noexcept;

/// Whether `host`, as in Host, is an address or `localhost`, with or without a port: what no page
/// of somebody else's can be reached by.
[[nodiscard]] bool NamesAddress(std::string_view host) noexcept;

}  // namespace tidegate
