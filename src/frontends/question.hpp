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

/// What the API can be asked, as it stands in the JSON: nothing is looked up yet. Views point
/// into the body or the memory that it was read with.
struct Question {
  explicit Question(std::pmr::memory_resource& memory) : identity(&memory), headers(&memory) {}

  /// Which members were there.
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
    kRequests = 1u << 11,  ///< Of a batch's root.
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
  std::string_view id;      ///< Of a refund.
  std::int64_t age_ms = 0;  ///< How long ago the charge was made that a refund takes back.

  // Of what operators change.
  std::int64_t amount = 0;
  std::string_view ttl;
  std::string_view reason;
  std::string_view door;  ///< As what an explanation is asked for.

  // "request": {...}
  unsigned request_members = 0;
  std::string_view method;
  std::string_view host;
  std::string_view path;
  std::string_view query;
  std::string_view client_ip;
  std::string_view peer;  ///< Who connected: the client is found from it and the headers.
  std::pmr::vector<HeaderField> headers;

  // A request as it comes through the gateway, and what that alone knows of it: never read.
  bool through_gateway = false;  ///< The caller speaks for a stranger, whom nobody believes.
  std::string_view route;
  bool keep_slashes = false;

  // An inline quota.
  std::string_view key;
  std::string_view limit;
  std::int64_t burst = 0;
  std::string_view algorithm;

  [[nodiscard]] bool Has(unsigned member) const noexcept { return (members & member) != 0; }
  /// As it stands in the JSON.
  [[nodiscard]] static std::string_view NameOf(unsigned member) noexcept;
};

/// Why a body is no question: a sentence, and where (RFC 6901).
struct BadQuestion {
  std::string message;
  std::string pointer;
};

/// The most questions of one batch.
inline constexpr std::size_t kMaxBatch = 256;

/// Reads one question, or a batch of them: `{"requests": [...]}`. Strict: unknown and duplicate
/// members, wrong types, nesting, bytes that are not UTF-8 and anything behind the end are refused.
[[nodiscard]] std::optional<BadQuestion> ReadQuestion(std::string_view json, Question& question,
                                                      std::pmr::memory_resource& memory);
[[nodiscard]] std::optional<BadQuestion> ReadBatch(std::string_view json,
                                                   std::pmr::vector<Question>& questions,
                                                   std::pmr::memory_resource& memory);

}  // namespace tidegate
