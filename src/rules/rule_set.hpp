// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/inline_vector.hpp"
#include "base/problem.hpp"
#include "core/charge.hpp"
#include "identity/identity.hpp"
#include "identity/request_view.hpp"
#include "rules/match_index.hpp"
#include "rules/override.hpp"
#include "rules/rule_spec.hpp"
#include "tidegate/error.hpp"
#include "tidegate/quota.hpp"

namespace tidegate {

/// A hash that lets maps of strings be searched by string_view.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

/// A compiled rule.
struct Rule {
  std::string id;
  std::uint32_t number = 0;  ///< The index in the RuleSet.
  Per per;
  std::uint32_t counts_like = 0;  ///< The first rule with the same `per`: they share an identity.
  bool counts_cookies = false;    ///< True: a request may have several identities.
  Quota quota;
  CostSpec cost;
  OnFailure on_failure = OnFailure::kOpen;
  Mode mode = Mode::kEnforce;
  bool announce = true;
  TextMap<Quota> overrides;          ///< The quotas of single keys, by identity.
  std::string limit;                 ///< As in the configuration; empty if made by a program.
  std::optional<DenialSpec> denial;  ///< The response to requests that this rule denies.

  /// Returns the limit of `of`, the rule's own quota or an override's, as a configuration has it.
  [[nodiscard]] std::string LimitOf(const Quota& of) const;
  /// Returns `of` as people read it; see QuotaText.
  [[nodiscard]] std::string TextOf(const Quota& of) const;

  /// Returns true if clients must not know of the rule: responses then omit its name and numbers.
  [[nodiscard]] bool hidden() const noexcept { return !announce || mode == Mode::kShadow; }
  [[nodiscard]] const Quota& QuotaOf(std::string_view identity) const noexcept {
    if (overrides.empty()) [[likely]]
      return quota;
    const auto found = overrides.find(identity);
    return found == overrides.end() ? quota : found->second;
  }
};

/// The charges of one request, and the rules that they come from.
struct Charges {
  explicit Charges(std::pmr::memory_resource& memory)
      : charges(memory), rules(memory), exempted(memory) {}

  InlineVector<Charge, 2> charges;
  InlineVector<const Rule*, 2> rules;     ///< The rule of each charge; nullptr: an inline quota.
  InlineVector<const Rule*, 1> exempted;  ///< The rules whose key an operator exempted.
  struct Ban {
    const Rule* rule = nullptr;  ///< nullptr: no key is banned.
    std::string_view identity;
    std::optional<Micros> left;  ///< The time until the ban ends; empty: it does not end.
  };
  Ban ban;
  /// Keeps the override table alive while a charge points at one of its quotas.
  std::shared_ptr<const OverrideTable> kept;

  void Add(const Charge& charge, const Rule* rule) {
    charges.push_back(charge);
    rules.push_back(rule);
  }
  /// Drops every charge but those for which `keep` returns true.
  template <class Keep>
  void Filter(Keep&& keep) {
    std::size_t kept_count = 0;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      if (!keep(charges[i])) continue;
      charges[kept_count] = charges[i];
      rules[kept_count++] = rules[i];
    }
    charges.resize(kept_count);
    rules.resize(kept_count);
  }
  /// Restores the state of a new object.
  void Clear() noexcept {
    charges.Clear();
    rules.Clear();
    exempted.Clear();
    ban = {};
    kept.reset();
  }
};

/// A decision that a caller requests by a rule's name.
struct RuleQuestion {
  std::string_view rule;
  std::span<const NamedValue> identity;
  std::optional<std::int64_t> cost;  ///< Empty: the rule's own cost.
  std::string_view lease;
};

/// The result of matching a request, before any charge.
enum class Access : std::uint8_t {
  kRules,   ///< The rules decide; the request is allowed if no rule applies.
  kExempt,  ///< The request is allowed and not counted.
  kDenied,  ///< The request is denied, whatever its quotas allow.
  kBanned,  ///< An operator banned a key of the request; `Charges::ban` names the rule.
};

/// All rules of one configuration. Immutable and thread-safe. Charges point into the RuleSet: keep
/// it alive until the response has been written.
class RuleSet {
 public:
  /// Compiles the rules. Returns nullptr if it added a problem of severity kError.
  [[nodiscard]] static std::shared_ptr<const RuleSet> Compile(
      const RuleSetSpec& spec, std::shared_ptr<const Identifier> identifier, Problems& problems);

  [[nodiscard]] const Rule* Find(std::string_view id) const noexcept;
  [[nodiscard]] std::span<const Rule> rules() const noexcept { return rules_; }
  /// Returns the proxies whose headers about a client's address are trusted.
  [[nodiscard]] const ClientAddressPolicy& client_policy() const noexcept { return client_policy_; }
  [[nodiscard]] const Identifier& identifier() const noexcept { return *identifier_; }
  /// Returns how paths of requests and patterns are compared.
  [[nodiscard]] const PathPolicy& paths() const noexcept { return paths_; }
  /// Returns true if a rule counts, matches or charges by the header `name`, in any letter case.
  [[nodiscard]] bool ReadsHeader(std::string_view name) const noexcept;
  /// As ReadsHeader(), but reads `_` as `-`: servers that turn fields into variables do so.
  [[nodiscard]] bool ReadsSpelling(std::string_view name) const noexcept;
  /// Returns the failure policy of inline quotas.
  [[nodiscard]] OnFailure on_failure() const noexcept { return on_failure_; }

  /// Adds the charge that `question` requests. For an unknown rule, the Error names the nearest.
  [[nodiscard]] Result<Access> Resolve(const RuleQuestion& question, const OverrideView& overrides,
                                       Charges& charges, std::pmr::memory_resource& memory) const;

  /// Adds a charge for rule `id` and the key `identity`, in the form that Identifier writes.
  [[nodiscard]] Result<Access> ResolveKey(std::string_view id, std::string_view identity,
                                          const OverrideView& overrides, Charges& charges) const;

  /// Checks `deny`, then `exempt` and preflight requests, then matches every rule, in the order of
  /// the file. `cost`, if given, replaces the cost of each rule; `concurrency` rules need `lease`.
  [[nodiscard]] Result<Access> Match(const RequestView& request, std::optional<std::int64_t> cost,
                                     std::string_view lease, const OverrideView& overrides,
                                     Charges& charges, std::pmr::memory_resource& memory) const;

  /// Returns true if the request passes uncounted only because it is a preflight request.
  [[nodiscard]] bool IsExemptPreflight(const RequestView& request) const;

  /// The matches of all rules, and the entries of `deny` and `exempt`, for reports.
  [[nodiscard]] std::span<const MatchSpec> matches() const noexcept { return matches_; }
  [[nodiscard]] std::span<const MatchSpec> denied() const noexcept { return denied_; }
  [[nodiscard]] std::span<const MatchSpec> exempt() const noexcept { return exempted_; }

  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

 private:
  RuleSet(const RuleSetSpec& spec, std::shared_ptr<const Identifier> identifier);
  void AddRule(const RuleSpec& spec, Problems& problems);

  [[nodiscard]] Error Unknown(std::string_view rule) const;
  [[nodiscard]] Result<std::string_view> IdentityOf(const Rule& rule, const RequestView& request,
                                                    const Charges& charges,
                                                    std::pmr::memory_resource& memory) const;
  void NoteHeaders(const MatchSpec& spec);
  void NoteHeaders(const RuleSpec& spec);

  std::shared_ptr<const Identifier> identifier_;
  ClientAddressPolicy client_policy_;
  PathPolicy paths_;
  std::vector<std::string> headers_read_;  ///< In lower case, sorted.
  OnFailure on_failure_;
  std::unordered_map<std::string, std::uint32_t> by_per_;
  std::vector<Rule> rules_;
  std::unordered_map<std::string_view, std::uint32_t> by_id_;
  const std::vector<MatchSpec> matches_;
  const std::vector<MatchSpec> denied_;
  const std::vector<MatchSpec> exempted_;
  bool exempt_preflights_;
  MatchIndex deny_;
  MatchIndex exempt_;
  MatchIndex index_;
};

}  // namespace tidegate
