// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/identity.hpp"
#include "rules/request_view.hpp"

namespace tidegate {

/// The JSON body of an API request, parsed but not yet resolved against the rules. Views point into
/// the body or into the memory given to the reader.
struct Question {
  explicit Question(std::pmr::memory_resource& memory) : identity(&memory), headers(&memory) {}

  /// Bits of `members`: which members are present.
  enum Member : unsigned {
    kRule = 1u << 0,
    kIdentity = 1u << 1,
    kCost = 1u << 2,
    kLease = 1u << 3,
    kId = 1u << 4,
    kAge = 1u << 5,
    kRequest = 1u << 6,
    kKey = 1u << 7,
    kLimit = 1u << 8,
    kBurst = 1u << 9,
    kAlgorithm = 1u << 10,
    kRequests = 1u << 11,  ///< Only in the root object of a batch.
    kAmount = 1u << 12,
    kTtl = 1u << 13,
    kReason = 1u << 14,
    kDoor = 1u << 15,
  };
  unsigned members = 0;

  std::string_view rule;
  std::pmr::vector<NamedValue> identity;
  std::int64_t cost = 1;
  std::string_view lease;
  std::string_view id;      ///< The id of a refund.
  std::int64_t age_ms = 0;  ///< How long ago the charge was made that a refund returns.

  // Changes by operators, and explanations.
  std::int64_t amount = 0;
  std::string_view ttl;
  std::string_view reason;
  std::string_view door;  ///< The frontend whose decision is explained: `api` or `gateway`.

  // "request": {...}
  unsigned request_members = 0;
  std::string_view method;
  std::string_view host;
  std::string_view path;
  std::string_view query;
  std::string_view client_ip;
  std::string_view peer;  ///< Address that connected; it and the headers yield the client's.
  std::pmr::vector<HeaderField> headers;

  // Set by `explain` for a request through the gateway; never read from JSON.
  bool through_gateway = false;  ///< The request is explained as an untrusted client's.
  std::string_view route;
  bool keep_slashes = false;  ///< The gateway forwards duplicate slashes.

  // An inline quota.
  std::string_view key;
  std::string_view limit;
  std::int64_t burst = 0;
  std::string_view algorithm;

  [[nodiscard]] bool Has(unsigned member) const noexcept { return (members & member) != 0; }
  /// Returns the name of a member in the JSON.
  [[nodiscard]] static std::string_view NameOf(unsigned member) noexcept;
};

/// Why a body is not a valid question: a message, and a JSON pointer to the place (RFC 6901).
struct BadQuestion {
  std::string message;
  std::string pointer;
};

/// The largest number of questions in a batch.
inline constexpr std::size_t kMaxBatch = 256;

/// Reads one question, or a batch of them: `{"requests": [...]}`. Strict: unknown and duplicate
/// members, wrong types, nesting, invalid UTF-8 and text after the JSON are rejected.
[[nodiscard]] std::optional<BadQuestion> ReadQuestion(std::string_view json, Question& question,
                                                      std::pmr::memory_resource& memory);
[[nodiscard]] std::optional<BadQuestion> ReadBatch(std::string_view json,
                                                   std::pmr::vector<Question>& questions,
                                                   std::pmr::memory_resource& memory);

}  // namespace tidegate
