// SPDX-License-Identifier: Apache-2.0
#include "cli/whom.hpp"

#include <algorithm>
#include <string_view>

#include "core/refuse.hpp"

namespace tidegate::cli {

namespace json = boost::json;

namespace {

/// Whether this is how lists name an address that they do not tell.
bool IsOnlyAName(const Whom& whom) {
  constexpr std::string_view kAddress = "client_ip=#";
  // No key that counts has such a value: `#` is encoded there. An identity may hold it.
  return whom.key.contains("=#") || whom.identity.starts_with(kAddress) ||
         std::ranges::any_of(whom.parts,
                             [&](const std::string& part) { return part.starts_with(kAddress); });
}

}  // namespace

Result<json::object> Whom::Question() const {
  const int ways = (identity.empty() ? 0 : 1) + (key.empty() ? 0 : 1) + (parts.empty() ? 0 : 1);
  if (rule.empty()) return Refuse(ErrorCode::kBadCharge, "say which rule: RULE IDENTITY");
  if (ways > 1) {
    return Refuse(ErrorCode::kBadCharge,
                  "say who is counted in one way: IDENTITY, --key KEY or --part SOURCE=VALUE");
  }
  if (IsOnlyAName(*this)) {
    return Refuse(ErrorCode::kBadCharge,
                  "a key with `=#` is only a name in lists, made so that they tell no address: say "
                  "who it is by IDENTITY; with `metrics.key_names: plain` in the configuration, "
                  "lists tell addresses");
  }
  json::object question{{"rule", rule}};
  if (!key.empty()) question["key"] = key;
  if (!identity.empty()) question["identity"] = identity;
  if (parts.empty()) return question;
  json::object sources;
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Refuse(ErrorCode::kBadCharge,
                    "--part is SOURCE=VALUE, as in client_ip=203.0.113.7 or header:x-api-key=abc");
    }
    if (!sources.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
      return Refuse(ErrorCode::kBadCharge, "--part names " + part.substr(0, equals) + " twice");
    }
  }
  question["identity"] = std::move(sources);
  return question;
}

std::vector<Hint> Whom::Hints() const {
  if (!OnlyRule()) return {};
  return {{400, "say who is counted: IDENTITY, --key KEY or --part SOURCE=VALUE"}};
}

std::string Whom::Text() const {
  if (!identity.empty()) return identity;
  if (!key.empty()) return key;
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : " ") + part;
  return text;
}

}  // namespace tidegate::cli
