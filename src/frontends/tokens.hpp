// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rules/listen_spec.hpp"

namespace tidegate {

/// The secrets that callers are known by. How long a look takes tells nothing of them: not whether
/// one begins alike, nor how long one is. Immutable.
class Tokens {
 public:
  static constexpr std::size_t kLongest = 128;

  struct Token {
    std::string name;
    TokenSpec::May may = TokenSpec::May::kAll;
    std::array<char, kLongest> secret{};  ///< Zeros behind it.
  };

  Tokens() = default;
  explicit Tokens(std::span<const TokenSpec> specs);

  [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }
  /// nullptr: nobody's.
  [[nodiscard]] const Token* Find(std::string_view secret) const noexcept;

 private:
  std::vector<Token> tokens_;
};

}  // namespace tidegate
