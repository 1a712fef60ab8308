// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate::net {

/// Splits a line that a person typed into words, as Redis and redis-cli do: blanks between them;
/// "..." with \n \r \t \b \a \xHH \\ \"; '...' with \'. False where a quote is not closed, or is
/// not followed by a blank or the end.
/// Words without quotes are views into `line`. The others are views into `unquoted`, which is
/// written anew, never moves while it is, and keeps its memory.
[[nodiscard]] bool SplitWords(std::string_view line, std::string& unquoted,
                              std::vector<std::string_view>& words);

}  // namespace tidegate::net
