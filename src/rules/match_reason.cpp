// SPDX-License-Identifier: Apache-2.0
#include "rules/match_reason.hpp"

#include <algorithm>
#include <string_view>

#include "rules/match_conditions.hpp"
#include "rules/match_index.hpp"
#include "rules/printable.hpp"
#include "rules/spaces.hpp"

namespace tidegate {
namespace {

bool HeaderFits(const MatchSpec::Header& wanted, const RequestView& request) {
  return std::ranges::any_of(request.headers, [&](const HeaderField& field) {
    return EqualsIgnoreCase(field.name, wanted.name) &&
           GlobMatches(wanted.pattern, TrimSpaces(field.value));
  });
}

/// The first few of a list that may be long.
template <class Items, class Text>
std::string Listed(const Items& items, Text text) {
  constexpr std::size_t kMost = 5;
  std::string list;
  for (std::size_t i = 0; i < items.size() && i < kMost; ++i) {
    if (i > 0) list += i + 1 == items.size() ? " or " : ", ";
    list += text(items[i]);
  }
  if (items.size() > kMost) list += " or one of " + std::to_string(items.size() - kMost) + " more";
  return list;
}

std::string Same(const std::string& text) { return text; }

std::string Differs(std::string_view what, const std::string& wanted, const std::string& is) {
  return "its " + std::string(what) + " is " + wanted + ", the request's is " + is;
}

}  // namespace

namespace {

/// Whether a header of this name usually carries a credential: one of its words, as in `x-api-key`,
/// is a word for credentials, or ends with one, as in `apikey`.
bool CarriesCredential(std::string_view name) {
  static constexpr std::string_view kWords[] = {
      "auth",       "authentication", "authorization", "bearer", "cookie",
      "credential", "csrf",           "jwt",           "otp",    "passwd",
      "session",    "sessionid",      "sid",           "sig",    "signature",
      "signed",     "verify",         "xsrf"};
  static constexpr std::string_view kEndings[] = {"key", "token", "secret", "password",
                                                  "credentials"};
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("-_."), name.size());
    const std::string_view word = name.substr(0, end);
    const auto ends = [&](std::string_view ending) { return word.ends_with(ending); };
    if (std::ranges::find(kWords, word) != std::end(kWords)) return true;
    if (std::ranges::any_of(kEndings, ends)) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

}  // namespace

std::string ShownPattern(const MatchSpec::Header& header) {
  if (header.pattern == "*") return header.pattern;
  if (CarriesCredential(header.name)) return "(not shown)";
  return header.written.empty() ? header.pattern : header.written;
}

namespace {

std::string NetworkText(const Network& network) { return network.Text(); }

std::string Conditions(const MatchSpec& spec);

/// The conditions of several specs: `(path /v1/health) or (method GET or HEAD)`.
std::string Alternatives(const std::vector<MatchSpec>& specs) {
  return Listed(specs, [](const MatchSpec& spec) { return "(" + Conditions(spec) + ")"; });
}

/// The conditions of a spec: `path /v1/health, method GET or HEAD`.
std::string Conditions(const MatchSpec& spec) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& wanted) {
    text += (text.empty() ? "" : ", ") + std::string(what) + " " + wanted;
  };
  if (!spec.hosts.empty()) add("host", Listed(spec.hosts, Same));
  if (!spec.paths.empty()) add("path", Listed(spec.ShownPaths(), Same));
  if (!spec.methods.empty()) add("method", Listed(spec.methods, Same));
  for (const MatchSpec::Header& header : spec.headers) {
    add("header", header.name + ": " + ShownPattern(header));
  }
  if (!spec.client_ips.empty()) add("client_ip", Listed(spec.client_ips, NetworkText));
  if (!spec.any.empty()) add("any of", Alternatives(spec.any));
  if (!spec.none.empty()) add("not", Alternatives(spec.none));
  return text;
}

/// Why the spec's own conditions do not hold, without `any` and `none`; empty: they do.
std::string WhyNotOwn(const MatchSpec& spec, const RequestView& request, Readings readings) {
  if (!spec.hosts.empty() && std::ranges::none_of(spec.hosts, [&](const std::string& host) {
        return HostMatches(host, request.host);
      })) {
    return Differs("host", Listed(spec.hosts, Same),
                   request.host.empty() ? "not known" : Printable(request.host));
  }
  const auto path_holds = [&](const std::string& pattern) {
    return request.PathHolds(readings,
                             [&](std::string_view path) { return PathMatches(pattern, path); });
  };
  if (!spec.paths.empty() && std::ranges::none_of(spec.paths, path_holds)) {
    return Differs("path", Listed(spec.ShownPaths(), Same), Printable(request.path));
  }
  if (!spec.methods.empty() &&
      std::ranges::find(spec.methods, request.method) == spec.methods.end()) {
    return Differs("method", Listed(spec.methods, Same), Printable(request.method));
  }
  for (const MatchSpec::Header& header : spec.headers) {
    if (HeaderFits(header, request)) continue;
    const bool there = FindHeader(request.headers, header.name).data() != nullptr;
    return "it asks for the header " + header.name + " to be " + ShownPattern(header) +
           (there ? ", and the request's is not" : ", and the request has none");
  }
  if (spec.client_ips.empty()) return {};
  if (!request.has_client) return "it is for certain addresses, and the client's is not known";
  if (std::ranges::any_of(spec.client_ips, [&](const Network& network) {
        return network.Contains(request.client);
      })) {
    return {};
  }
  return Differs("client_ip", Listed(spec.client_ips, NetworkText), request.client.Text());
}

std::string WhyNotIn(const MatchSpec& spec, const RequestView& request, Readings readings) {
  if (std::string why = WhyNotOwn(spec, request, readings); !why.empty()) return why;
  const auto matches = [&](Readings where) {
    return [&, where](const MatchSpec& other) { return WhyNotIn(other, request, where).empty(); };
  };
  if (!spec.any.empty() && std::ranges::none_of(spec.any, matches(readings))) {
    return "none of its alternatives matches: " + Alternatives(spec.any);
  }
  const auto excluded = std::ranges::find_if(spec.none, matches(Opposite(readings)));
  if (excluded == spec.none.end()) return {};
  return "it excludes " + Conditions(*excluded);
}

}  // namespace

std::string WhyNot(const MatchSpec& spec, const RequestView& request) {
  return WhyNotIn(spec, request, Readings::kAny);
}

}  // namespace tidegate
