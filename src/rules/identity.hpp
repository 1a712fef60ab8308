// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rules/keyed_hash.hpp"
#include "rules/request_view.hpp"
#include "rules/source.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

class JwtVerifier;
struct CookieChoice;

/// The longest value of one part that is accepted at all; longer is an error, not a hash.
inline constexpr std::size_t kMaxIdentityValue = 8192;

/// One value that a caller names himself: `{source: value}`; without a source it is read as the
/// rule's first.
struct NamedValue {
  std::string_view source;  ///< Empty: the rule's first.
  std::string_view value;
};

/// Turns whom a rule counts into the key's identity, a short printable text:
///
///     client_ip=203.0.113.7
///     header:x-api-key=~k3Jx0...            22 base64url characters of an HMAC-SHA-256
///     client_ip=2001:db8:1:2::&path=/v1/x   parts in the rule's order, joined by '&'
///
/// A value is tagged with its source and percent-encoded where it holds '%', '&', '=', '{', '}',
/// '~' or anything but printable ASCII, so no value can look like another source's, or like two
/// parts. Secret values, and values above 128 encoded bytes, appear as their HMAC only; `const` has
/// no value. IPv6 is masked. Thread-safe; the text is allocated from `memory`, which is best a
/// monotonic buffer, since nothing is given back to it. Nothing else is allocated but by an Error
/// and by OpenSSL for a `jwt:` source.
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

  /// Whom `per` counts in this request. A part of which no alternative is present counts the
  /// client's address instead, so that nobody escapes by leaving a header out and nobody shares
  /// an empty key; an Error only if that is unknown too, a value is beyond kMaxIdentityValue, or a
  /// header that counts comes on several lines that differ (rules/source_value.hpp says why).
  ///
  /// A request has several identities if the cookie that counts has several different values,
  /// because servers differ in which of them they use: all must be charged. `choice` says which one
  /// to return, and is told how many there are. An Error if there are too many, if two cookies have
  /// several values, or if the configuration rejects such requests. nullptr: the first.
  [[nodiscard]] Result<std::string_view> FromRequest(const Per& per, const RequestView& request,
                                                     std::pmr::memory_resource& memory,
                                                     CookieChoice* choice = nullptr) const;

  /// Whom a caller names: one plain value for the first source of a rule with one part, or one
  /// value per part by source. A rule that counts `const` only needs none. `jwt:` takes the claim's
  /// value, not a token. `client_ip` is always a source, since it is what a request without the
  /// others is counted by. Of several alternatives the rule's first counts, as in a request.
  [[nodiscard]] Result<std::string_view> FromValues(const Per& per,
                                                    std::span<const NamedValue> values,
                                                    std::pmr::memory_resource& memory) const;

  /// Whether `identity` is a text that FromRequest or FromValues could give for `per`: all parts in
  /// their order, addresses masked, secrets hashed.
  [[nodiscard]] bool CouldBe(const Per& per, std::string_view identity) const;

  /// `identity`, a text of the form above, as those may see it who need not know whom it is about:
  /// what is not a hash already becomes one, behind `#`. The same each time, so that people can ask
  /// whether it is somebody whom they know.
  [[nodiscard]] std::string Veiled(std::string_view identity) const;

  /// Writes a pseudonym of the key of `rule` and `identity` that clients and logs may see: standard
  /// base64 of a keyed hash, the same on all nodes that share the HMAC key.
  static constexpr std::size_t kPartitionSize = 12;
  void WritePartition(std::string_view rule, std::string_view identity,
                      std::span<char, kPartitionSize> out) const;

  /// Of an inline quota's key, which has no source: tagged `key`, treated as a secret.
  [[nodiscard]] Result<std::string_view> FromKey(std::string_view key,
                                                 std::pmr::memory_resource& memory) const;

 private:
  Options options_;
  KeyedHash hash_;
};

}  // namespace tidegate
