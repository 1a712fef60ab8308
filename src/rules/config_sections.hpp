// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/config.hpp"
#include "rules/config_value.hpp"
#include "rules/known_keys.hpp"
#include "rules/ticked.hpp"

// What the files that read a configuration's sections share; only they include this.

namespace tidegate {

/// Where things stand in the file that are judged only when all of it is read.
struct ConfigPlaces {
  struct Rule {
    std::size_t index = 0;  ///< In the list; rules with errors leave gaps.
    Position per;
    Position cost;
    Position match;
  };
  Position store;
  Position on_failure;  ///< Of the store.
  /// The place in the file's list of the first rule that says nothing of failures.
  std::optional<std::size_t> undecided;
  /// One of `listen`; line 0: not written.
  struct Door {
    Position at;  ///< Of its address.
    Position proxy_protocol;
    Position auth;
    bool meant = false;                ///< Is there and not `off`, good or bad.
    bool client_certificates = false;  ///< Are asked for, good or bad.
  };
  Door api;
  Door admin;
  Door gateway;
  Door resp;
  Position access;
  Position access_tokens;        ///< Line 0: not written.
  Position access_certificates;  ///< Likewise.
  Position gateway_section;
  Position access_log;
  Position hops;
  bool trusts = false;                    ///< `trusted_proxies` has entries, good or bad.
  std::vector<Position> trusted_proxies;  ///< One per network.
  Position rule_list;
  std::vector<Rule> rules;       ///< One per rule.
  std::vector<Position> deny;    ///< One per entry.
  std::vector<Position> exempt;  ///< One per entry.
  struct Route {
    std::size_t index = 0;
    Position upstream;  ///< Line 0: not written.
  };
  Position route_list;
  std::vector<Route> routes;  ///< One per route.
  struct Upstream {
    std::string name;
    Position at;
  };
  std::vector<Upstream> upstreams;  ///< One per upstream.
};

struct ConfigDraft {
  Config config;
  ConfigPlaces places;
};

void ReadStore(const ConfigValue& value, ConfigDraft& draft);
void ReadListen(const ConfigValue& value, ConfigDraft& draft);
void ReadAccess(const ConfigValue& value, ConfigDraft& draft);
void ReadClientIp(const ConfigValue& value, ConfigDraft& draft);
void ReadIdentity(const ConfigValue& value, ConfigDraft& draft);
void ReadPaths(const ConfigValue& value, ConfigDraft& draft);
void ReadResponses(const ConfigValue& value, ConfigDraft& draft);
void ReadApi(const ConfigValue& value, ConfigDraft& draft);
void ReadResp(const ConfigValue& value, ConfigDraft& draft);
void ReadLimits(const ConfigValue& value, ConfigDraft& draft);
void ReadLog(const ConfigValue& value, ConfigDraft& draft);
void ReadMetrics(const ConfigValue& value, ConfigDraft& draft);
void ReadProcess(const ConfigValue& value, ConfigDraft& draft);
void ReadDeny(const ConfigValue& value, ConfigDraft& draft);
void ReadExempt(const ConfigValue& value, ConfigDraft& draft);
void ReadRules(const ConfigValue& value, ConfigDraft& draft);
void ReadGateway(const ConfigValue& value, ConfigDraft& draft);
void ReadAccessLog(const ConfigValue& value, ConfigDraft& draft);
void ReadRoutes(const ConfigValue& value, ConfigDraft& draft);
void ReadUpstreams(const ConfigValue& value, ConfigDraft& draft);

void ReadMatch(const ConfigValue& value, MatchSpec& match);
/// Reads a `denial` section of a rule, a route or `responses`.
void ReadDenial(const ConfigValue& value, std::optional<DenialSpec>& denial);
[[nodiscard]] std::optional<Network> ReadNetwork(const ConfigValue& value);
/// A header's name in lower case, if it is a token.
[[nodiscard]] std::optional<std::string> HeaderName(std::string_view text);
/// What names a rule, a route and an upstream.
[[nodiscard]] bool IsId(std::string_view text) noexcept;
inline constexpr std::size_t kMaxId = 64;
inline constexpr std::string_view kIdGrammar =
    "should have 1 to 64 of the characters A-Z a-z 0-9 . _ -";

inline constexpr std::array<Choice<OnFailure>, 3> kOnFailureWords = {
    {{"open", OnFailure::kOpen}, {"closed", OnFailure::kClosed}, {"local", OnFailure::kLocal}}};

inline constexpr std::array<Choice<EncodedSlashes>, 2> kEncodedSlashes = {
    {{"reject", EncodedSlashes::kReject}, {"match", EncodedSlashes::kMatch}}};

/// What overrides must fit: the rule that they belong to, as far as it is read.
struct OverrideContext {
  const Per& per;
  Algorithm algorithm;
  std::int64_t ceiling;
  std::optional<std::int64_t> max_debt;  ///< As the rule has it; its overrides share it.
  const CostSpec& cost;
};
[[nodiscard]] std::vector<OverrideSpec> ReadOverrides(const ConfigValue& value,
                                                      const OverrideContext& rule);

void AppendStoreKeys(std::vector<SectionKeys>& sections);
void AppendListenKeys(std::vector<SectionKeys>& sections);
void AppendAccessKeys(std::vector<SectionKeys>& sections);
void AppendServerKeys(std::vector<SectionKeys>& sections);
void AppendMetricsKeys(std::vector<SectionKeys>& sections);
void AppendProcessKeys(std::vector<SectionKeys>& sections);
void AppendIdentityKeys(std::vector<SectionKeys>& sections);
void AppendMatchKeys(std::vector<SectionKeys>& sections);
void AppendDenialKeys(std::vector<SectionKeys>& sections);
void AppendRuleKeys(std::vector<SectionKeys>& sections);
void AppendOverrideKeys(std::vector<SectionKeys>& sections);
void AppendGatewayKeys(std::vector<SectionKeys>& sections);

template <class Out, std::size_t N>
SectionKeys KeysOf(std::string_view section, const std::array<ConfigKey<Out>, N>& keys) {
  const auto names = NamesOf(keys);
  return {section, {names.begin(), names.end()}};
}

}  // namespace tidegate
