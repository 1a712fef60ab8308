// SPDX-License-Identifier: Apache-2.0
#include "admin/rule_json.hpp"

#include <string>
#include <utility>
#include <vector>

#include "rules/match_reason.hpp"

namespace tidegate {

namespace json = boost::json;

json::object MatchJson(const MatchSpec& match) {
  json::object out;
  const auto list = [&](const char* name, const std::vector<std::string>& items) {
    if (!items.empty()) out[name] = json::array(items.begin(), items.end());
  };
  list("host", match.hosts);
  list("path", match.ShownPaths());
  list("method", match.methods);
  if (!match.headers.empty()) {
    json::object headers;
    for (const auto& header : match.headers) headers[header.name] = ShownPattern(header);
    out["header"] = std::move(headers);
  }
  if (!match.client_ips.empty()) {
    json::array networks;
    for (const Network& network : match.client_ips)
      networks.push_back(json::string(network.Text()));
    out["client_ip"] = std::move(networks);
  }
  const auto nested = [&](const char* name, const std::vector<MatchSpec>& specs) {
    if (specs.empty()) return;
    json::array matches;
    for (const MatchSpec& spec : specs) matches.push_back(MatchJson(spec));
    out[name] = std::move(matches);
  };
  nested("any", match.any);
  nested("not", match.none);
  return out;
}

}  // namespace tidegate
