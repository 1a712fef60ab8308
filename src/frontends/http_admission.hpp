// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "frontends/admission.hpp"
#include "frontends/refusals.hpp"
#include "net/http_exchange.hpp"

namespace tidegate {

/// Where a caller over HTTP shows a token: `X-Tidegate-Token: TOKEN` always; `Authorization: Bearer
/// TOKEN` where the request is the caller's own, and not one that a proxy copied from its client.
enum class TokenFields : std::uint8_t { kOwn, kCopied };

/// Whether the exchange's caller has the rights that are `needed`. False: it has been answered,
/// with 401 where he should say who he is, with 403 where that would not help. A proxy gets a 500
/// instead: its client, whom a 401 would reach, can do nothing about it.
[[nodiscard]] bool Admit(net::HttpExchange& exchange, const Admission& admission,
                         const Tokens& tokens, TokenFields fields, Rights needed,
                         Refusals& refusals);

/// Who asks, for the record: a token's name, or how else the caller is known.
[[nodiscard]] std::string CallerOf(const net::HttpExchange& exchange, const Tokens& tokens);

}  // namespace tidegate
