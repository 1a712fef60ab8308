// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/admin_client.hpp"
#include "cli/whom.hpp"

namespace tidegate::cli {

/// What an operator does to a key.
enum class Change : std::uint8_t { kReset, kGrant, kRefund, kBan, kAllow, kOverride, kLift };

/// `reset`, `grant`, ...: of the command and of the endpoint.
[[nodiscard]] std::string_view Name(Change change) noexcept;

struct ChangeOptions {
  Change change = Change::kReset;
  AskOptions ask = {};
  Whom whom = {};
  std::string amount = {};         ///< Of kGrant: a whole number.
  std::string id = {};             ///< Of kRefund.
  std::int64_t cost = 0;           ///< Of kRefund; 0: the rule's own.
  std::optional<Micros> age = {};  ///< Of kRefund.
  std::string limit = {};          ///< Of kOverride: `5000/s`.
  std::int64_t burst = 0;          ///< Of kOverride; 0: as the limit says.
  std::string lasting = {};        ///< A duration; empty: until it is lifted.
  std::string reason = {};
};

/// What is sent; the Error says what is missing.
[[nodiscard]] Result<AdminQuestion> QuestionOf(const ChangeOptions& given);

/// `tidegate reset`, `grant`, `refund`, `ban`, `allow`, `override` and `lift`. Returns an exit
/// code: kOk also where there was nothing to do.
[[nodiscard]] int ChangeKey(const ChangeOptions& options, const Console& console);

}  // namespace tidegate::cli
