// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "net/http_exchange.hpp"

namespace tidegate {

/// 200, never to be cached.
inline void AnswerJson(net::HttpExchange& exchange, std::string_view body) {
  exchange.Begin(200) << "Cache-Control: no-store\r\n";
  exchange.End("application/json", body);
}

}  // namespace tidegate
