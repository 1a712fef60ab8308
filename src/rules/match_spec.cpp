// SPDX-License-Identifier: Apache-2.0
#include "rules/match_spec.hpp"

#include <algorithm>
#include <functional>
#include <memory_resource>

#include "base/message_text.hpp"
#include "base/utf8.hpp"

namespace tidegate {
namespace {

/// Returns the first few items of a list that may be long.
template <class Items, class Text = std::identity>
std::string Listed(const Items& items, Text text = {}) {
  constexpr std::size_t kMost = 5;
  std::string list;
  for (std::size_t i = 0; i < items.size() && i < kMost; ++i) {
    if (i > 0) list += i + 1 == items.size() ? " or " : ", ";
    list += std::invoke(text, items[i]);
  }
  if (items.size() > kMost) list += " or one of " + std::to_string(items.size() - kMost) + " more";
  return list;
}

std::string Differs(std::string_view what, const std::string& wanted, const std::string& is) {
  return "its " + std::string(what) + " is " + wanted + ", the request's is " + is;
}

/// Returns true if a header of this name usually carries a credential: one word of the name, as in
/// `x-api-key`, is a word for credentials, or ends with such a word, as in `apikey`.
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

std::string Conditions(const MatchSpec& spec);

/// Returns the conditions of several specs: `(path /v1/health) or (method GET or HEAD)`.
std::string Alternatives(const std::vector<MatchSpec>& specs) {
  return Listed(specs, [](const MatchSpec& spec) { return "(" + Conditions(spec) + ")"; });
}

/// Returns the conditions of a spec: `path /v1/health, method GET or HEAD`.
std::string Conditions(const MatchSpec& spec) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& wanted) {
    text += (text.empty() ? "" : ", ") + std::string(what) + " " + wanted;
  };
  if (!spec.hosts.empty()) add("host", Listed(spec.hosts));
  if (!spec.paths.empty()) add("path", Listed(spec.ShownPaths()));
  if (!spec.methods.empty()) add("method", Listed(spec.methods));
  for (const MatchSpec::Header& header : spec.headers) {
    add("header", header.name + ": " + ShownPattern(header));
  }
  if (!spec.client_ips.empty()) add("client_ip", Listed(spec.client_ips, &Network::Text));
  if (!spec.any.empty()) add("any of", Alternatives(spec.any));
  if (!spec.none.empty()) add("not", Alternatives(spec.none));
  return text;
}

/// Returns why the spec's own conditions do not hold, without `any` and `none`; empty: they hold.
std::string WhyNotOwn(const MatchSpec& spec, const RequestView& request, Readings readings) {
  if (!spec.hosts.empty() && std::ranges::none_of(spec.hosts, [&](const std::string& host) {
        return HostMatches(host, request.host);
      })) {
    return Differs("host", Listed(spec.hosts),
                   request.host.empty() ? "not known" : Printable(request.host));
  }
  const auto path_holds = [&](const std::string& pattern) {
    return request.PathHolds(readings,
                             [&](std::string_view path) { return PathMatches(pattern, path); });
  };
  if (!spec.paths.empty() && std::ranges::none_of(spec.paths, path_holds)) {
    return Differs("path", Listed(spec.ShownPaths()), Printable(request.path));
  }
  if (!spec.methods.empty() &&
      std::ranges::find(spec.methods, request.method) == spec.methods.end()) {
    return Differs("method", Listed(spec.methods), Printable(request.method));
  }
  for (const MatchSpec::Header& header : spec.headers) {
    if (HasHeader(request, header.name, header.pattern)) continue;
    const bool there = FindHeader(request.headers, header.name).data() != nullptr;
    return "it requires the header " + header.name + " to be " + ShownPattern(header) +
           (there ? ", and the request's is not" : ", and the request has none");
  }
  if (spec.client_ips.empty()) return {};
  if (!request.has_client)
    return "it requires certain client addresses, and the request's is not known";
  if (std::ranges::any_of(spec.client_ips, [&](const Network& network) {
        return network.Contains(request.client);
      })) {
    return {};
  }
  return Differs("client_ip", Listed(spec.client_ips, &Network::Text), request.client.Text());
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

void IgnorePathCase(MatchSpec& spec) {
  spec.written_paths = spec.paths;
  for (std::string& path : spec.paths) {
    std::pmr::monotonic_buffer_resource memory;
    path = std::string(CanonicalPath(path, /*ignore_case=*/true, memory));
  }
  for (MatchSpec& inner : spec.any) IgnorePathCase(inner);
  for (MatchSpec& inner : spec.none) IgnorePathCase(inner);
}

bool HostMatches(std::string_view pattern, std::string_view host) noexcept {
  if (!pattern.starts_with("*.")) return pattern == host;
  pattern.remove_prefix(1);
  return host.size() > pattern.size() && host.ends_with(pattern);
}

bool PathMatches(std::string_view pattern, std::string_view path) noexcept {
  if (pattern == "/**") return true;
  if (!path.starts_with('/')) return false;  // The path of an OPTIONS request may be `*`.
  const bool below = pattern.ends_with("/**");
  if (below) pattern.remove_suffix(3);
  while (!pattern.empty()) {
    if (path.empty()) return false;
    const std::string_view wanted = pattern.substr(1, pattern.find('/', 1) - 1);
    const std::string_view given = path.substr(1, path.find('/', 1) - 1);
    if (wanted.starts_with(':') ? given.empty() : wanted != given) return false;
    pattern.remove_prefix(1 + wanted.size());
    path.remove_prefix(1 + given.size());
  }
  return below || path.empty();
}

bool GlobMatches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // The last `*` passed; its run ends at `run_end`.
  std::size_t run_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {  // Tested first: the text may have a '*' too.
      star = p++;
      run_end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {  // Only the run of the last `*` needs to grow.
      p = star + 1;
      t = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool HasHeader(const RequestView& request, std::string_view name,
               std::string_view pattern) noexcept {
  return std::ranges::any_of(request.headers, [&](const HeaderField& field) {
    return EqualsIgnoreCase(field.name, name) && GlobMatches(pattern, TrimSpaces(field.value));
  });
}

std::string ShownPattern(const MatchSpec::Header& header) {
  if (header.pattern == "*") return header.pattern;
  if (CarriesCredential(header.name)) return "(not shown)";
  return header.written.empty() ? header.pattern : header.written;
}

std::string WhyNot(const MatchSpec& spec, const RequestView& request) {
  return WhyNotIn(spec, request, Readings::kAny);
}

}  // namespace tidegate
