// SPDX-License-Identifier: Apache-2.0
#include "frontends/tokens.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

namespace tidegate {

Tokens::Tokens(std::span<const TokenSpec> specs) {
  tokens_.reserve(specs.size());
  for (const TokenSpec& spec : specs) {
    Token& token = tokens_.emplace_back();
    token.name = spec.name;
    token.may = spec.may;
    std::memcpy(token.secret.data(), spec.secret.data(), std::min(spec.secret.size(), kLongest));
  }
}

const Tokens::Token* Tokens::Find(std::string_view secret) const noexcept {
  // A zero would be taken for the padding.
  if (secret.empty() || secret.size() > kLongest || secret.find('\0') != std::string_view::npos)
    return nullptr;
  std::array<char, kLongest> padded{};
  std::memcpy(padded.data(), secret.data(), secret.size());
  const Token* found = nullptr;
  for (const Token& token : tokens_) {  // All of them, whichever it is.
    if (CRYPTO_memcmp(token.secret.data(), padded.data(), kLongest) == 0) found = &token;
  }
  OPENSSL_cleanse(padded.data(), padded.size());
  return found;
}

}  // namespace tidegate
