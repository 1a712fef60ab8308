// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/problem.hpp"
#include "core/charge.hpp"
#include "identity/client_address.hpp"
#include "identity/path.hpp"
#include "identity/source.hpp"
#include "rules/denial_spec.hpp"
#include "rules/match_spec.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// The cost of one request.
struct CostSpec {
  enum class Kind : std::uint8_t { kFixed, kHeader, kResponse };
  Kind kind = Kind::kFixed;
  std::int64_t fixed = 1;
  std::string header;  ///< In lower case; kHeader: of the request, kResponse: of the response.

  friend bool operator==(const CostSpec&, const CostSpec&) = default;
};

/// A quota for one identity of a rule, which replaces the rule's quota.
struct OverrideSpec {
  struct Value {
    std::string source;  ///< If empty, the rule's first source.
    std::string value;
    friend bool operator==(const Value&, const Value&) = default;
  };
  std::vector<Value> identity;
  Quota quota;
  Position at;
};

struct RuleSpec {
  std::string id;  ///< 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
  MatchSpec match;
  Per per;
  Quota quota;
  CostSpec cost;
  std::optional<OnFailure> on_failure;
  Mode mode = Mode::kEnforce;
  bool announce = true;              ///< If false, clients must not know of the rule.
  std::optional<DenialSpec> denial;  ///< The response to requests that this rule denies.
  std::vector<OverrideSpec> overrides;
  Position at;
  std::string limit = {};  ///< As in the configuration: `1000/24h`. Empty if made by a program.
};

/// The input of RuleSet::Compile(). Points into the configuration that contains it.
struct RuleSetSpec {
  std::span<const RuleSpec> rules;
  std::span<const MatchSpec> deny;
  std::span<const MatchSpec> exempt;
  bool exempt_preflights = false;
  PathPolicy paths;
  const ClientAddressPolicy& client_policy;
  OnFailure on_failure = OnFailure::kOpen;  ///< For rules without a policy, and for inline quotas.
};

}  // namespace tidegate
