// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decision/pipeline.hpp"
#include "identity/identity.hpp"
#include "identity/request_view.hpp"
#include "rules/rule_set.hpp"
#include "store/call.hpp"

namespace tidegate {

/// The JSON body of an API request, parsed but not yet resolved against the rules. Views point into
/// the body or into the memory given to the reader.
struct Question {
  explicit Question(std::pmr::memory_resource& memory) : identity(&memory), headers(&memory) {}

  /// Bits of `members`: each says that a member is present.
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
    kRequests = 1u << 11,  ///< Allowed only in the root object of a batch.
    kAmount = 1u << 12,
    kTtl = 1u << 13,
    kReason = 1u << 14,
    kListener = 1u << 15,
  };
  unsigned members = 0;

  std::string_view rule;
  std::pmr::vector<NamedValue> identity;
  std::int64_t cost = 1;
  std::string_view lease;
  std::string_view id;      ///< The id of a refund.
  std::int64_t age_ms = 0;  ///< The age of the charge that a refund returns.

  // Members for changes by operators and for explanations.
  std::int64_t amount = 0;
  std::string_view ttl;
  std::string_view reason;
  std::string_view listener;  ///< The listener whose decision is explained: `api` or `gateway`.

  // Members of "request": {...}
  unsigned request_members = 0;
  std::string_view method;
  std::string_view host;
  std::string_view path;
  std::string_view query;
  std::string_view client_ip;
  std::string_view peer;  ///< The address that connected; the headers may name another client.
  std::pmr::vector<HeaderField> headers;

  /// The gateway's view of an explained request; never read from JSON.
  struct Gateway {
    bool through = false;  ///< True: treat the request as sent by an untrusted client.
    std::string_view route;
    bool keep_slashes = false;  ///< The gateway forwards duplicate slashes.
  };
  Gateway gateway;

  // Members of an inline quota.
  std::string_view key;
  std::string_view limit;
  std::int64_t burst = 0;
  std::string_view algorithm;

  [[nodiscard]] bool Has(unsigned member) const noexcept { return (members & member) != 0; }
  [[nodiscard]] std::optional<std::int64_t> cost_if_given() const noexcept {
    return Has(kCost) ? std::optional(cost) : std::nullopt;
  }
  /// Returns the name of a member in the JSON.
  [[nodiscard]] static std::string_view NameOf(unsigned member) noexcept;
};

/// The rejection of a request: the HTTP status, a message, and a JSON pointer (RFC 6901).
struct Objection {
  int status = 400;
  std::string message;
  std::string pointer = {};
};

/// The largest number of questions in a batch.
inline constexpr std::size_t kMaxBatch = 256;

/// Reads one question, or a batch of them: `{"requests": [...]}`. Strict: unknown and duplicate
/// members, wrong types, nesting, invalid UTF-8 and text after the JSON are rejected.
[[nodiscard]] std::optional<Objection> ReadQuestion(std::string_view json, Question& question,
                                                    std::pmr::memory_resource& memory);
[[nodiscard]] std::optional<Objection> ReadBatch(std::string_view json,
                                                 std::pmr::vector<Question>& questions,
                                                 std::pmr::memory_resource& memory);

/// Selects whether callers may send their own quotas.
enum class InlineQuotas : std::uint8_t { kRefused, kAllowed };

/// The rule name of inline quotas. No configured rule may have it.
inline constexpr std::string_view kInlineRule = "inline";

/// Fills `call` with `kind`, with the charges of `question`, and with what operators decided about
/// the keys of these charges (bans, allowances). `scratch` is needed only until this returns.
[[nodiscard]] std::optional<Objection> Resolve(const Question& question, Call::Kind kind,
                                               InlineQuotas inline_quotas, DecisionCall& call,
                                               std::pmr::memory_resource& scratch);

/// Adds the charge of an inline quota to `call`, which copies key and quota. `lease` must outlive
/// the call.
[[nodiscard]] std::optional<Error> AddInlineCharge(DecisionCall& call, std::string_view key,
                                                   const Quota& quota, std::int64_t cost,
                                                   std::string_view lease);

/// Returns an objection unless `question` has only `members`, and all `required` ones.
[[nodiscard]] std::optional<Objection> CheckMembers(const Question& question, unsigned members,
                                                    unsigned required, std::string_view path);

/// Fills `view` with the request's attributes as rules see them: in normal form, with the client's
/// address. `view` points into the question and `memory`.
[[nodiscard]] std::optional<Objection> ViewOf(const Question& question, const RuleSet& rules,
                                              RequestView& view, std::pmr::memory_resource& memory);

}  // namespace tidegate
