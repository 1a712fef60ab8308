// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "frontends/question.hpp"
#include "frontends/resp/resp_reply.hpp"
#include "frontends/resp/resp_words.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// Returns the store operation of a TG command.
[[nodiscard]] Call::Kind KindOf(RespWord word) noexcept;

/// Reads the arguments of a TG command, which begin with its name, into `question` as views, and
/// the form of its reply into `form`. Returns an error message, or an empty text if they are valid.
[[nodiscard]] std::string ReadRespQuestion(const RespWordInfo& word,
                                           std::span<const std::string_view> arguments,
                                           Question& question, RespPending::Form& form);

}  // namespace tidegate
