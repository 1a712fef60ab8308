// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "frontends/question.hpp"
#include "frontends/resp/resp_words.hpp"
#include "tidegate/call.hpp"

namespace tidegate {

/// What a TG command asks the store for.
[[nodiscard]] Call::Kind KindOf(RespWord word) noexcept;

/// Reads the arguments of a TG command, which begin with its name. A text: what is wrong. Lease and
/// id are copied to `memory`: they are needed until the answer; the other views are not.
[[nodiscard]] std::string ReadRespQuestion(const RespWordInfo& word,
                                           std::span<const std::string_view> arguments,
                                           Question& question, std::pmr::memory_resource& memory);

}  // namespace tidegate
