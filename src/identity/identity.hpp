// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

#include "identity/keyed_hash.hpp"
#include "identity/request_view.hpp"
#include "identity/source.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

class JwtVerifier;
struct CookieChoice;

/// The maximum length of one part's value. A longer value is an error; it is not hashed.
inline constexpr std::size_t kMaxIdentityValue = 8192;

/// One value of an identity that a caller passes.
struct NamedValue {
  std::string_view source;  ///< Empty: the rule's first source.
  std::string_view value;
};

/// Makes the identity of a key, a short printable text, from the values by which a rule counts:
///
///     client_ip=203.0.113.7
///     header:x-api-key=~k3Jx0...            22 base64url characters of an HMAC-SHA-256
///     client_ip=2001:db8:1:2::&path=/v1/x   parts in the rule's order, joined by '&'
///
/// A value is tagged with its source, and '%', '&', '=', '{', '}', '~' and all but printable ASCII
/// are percent-encoded, so that no value can be mistaken for another source's or for two parts.
/// Secret values, and values above 128 encoded bytes, appear only as their HMAC; `const` has no
/// value. IPv6 is masked. Thread-safe. The text is allocated from `memory`, preferably a monotonic
/// buffer; only Errors, and OpenSSL for a `jwt:` source, use other memory.
class Identifier {
 public:
  struct Options {
    std::string hmac_key = {};  ///< At least 16 bytes.
    int ipv6_prefix = 64;
    bool ignore_path_case = false;
    bool reject_duplicate_cookies = false;
    std::shared_ptr<const JwtVerifier> jwt = nullptr;  ///< nullptr: jwt sources are never present.
  };
  explicit Identifier(Options options);

  /// Returns the identity of a request. If a request has none of a part's alternatives, the
  /// client's address is used, so that no client escapes its limit by omitting a header. Returns an
  /// Error if the address is unknown too, if a value is longer than kMaxIdentityValue, or if a
  /// counted value is ambiguous (see source_value.hpp).
  ///
  /// If a counted cookie has several values, the request has several identities, and all must be
  /// charged. `choice` selects the identity to return (nullptr: the first) and receives their
  /// number. An Error if the configuration rejects such requests.
  [[nodiscard]] Result<std::string_view> FromRequest(const Per& per, const RequestView& request,
                                                     std::pmr::memory_resource& memory,
                                                     CookieChoice* choice = nullptr) const;

  /// Returns the identity that a caller passes: one plain value for the first source of a rule with
  /// one part, or one value per part, each with its source; no value for `const`. `client_ip` is
  /// always a valid source. Of several alternatives of a part, the rule's first is used.
  [[nodiscard]] Result<std::string_view> FromValues(const Per& per,
                                                    std::span<const NamedValue> values,
                                                    std::pmr::memory_resource& memory) const;

  /// Returns true if FromRequest or FromValues could return `identity` for `per`.
  [[nodiscard]] bool CouldBe(const Per& per, std::string_view identity) const;

  /// Returns `identity` with each value that is no hash replaced by a hash that begins with `#`.
  [[nodiscard]] std::string Veiled(std::string_view identity) const;

  /// Writes a pseudonym for the key of `rule` and `identity`, which clients and logs may see:
  /// standard base64 of a keyed hash. It is the same on all nodes that share the HMAC key.
  static constexpr std::size_t kPartitionSize = 12;
  void WritePartition(std::string_view rule, std::string_view identity,
                      std::span<char, kPartitionSize> out) const;

  /// Returns the identity of an inline quota's key: tagged `key` and treated as a secret.
  [[nodiscard]] Result<std::string_view> FromKey(std::string_view key,
                                                 std::pmr::memory_resource& memory) const;

 private:
  Options options_;
  KeyedHash hash_;
};

}  // namespace tidegate
