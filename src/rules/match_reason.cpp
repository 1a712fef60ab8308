// SPDX-License-Identifier: Apache-2.0
#include "rules/match_reason.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "rules/match_index.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

/// Without the first slash; `/` has one segment, which is empty.
std::vector<std::string_view> SegmentsOf(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool PathFits(std::string_view pattern, std::string_view path) {
  if (pattern == "/**") return true;
  if (!path.starts_with('/')) return false;  // `*`, of OPTIONS.
  std::vector<std::string_view> wanted = SegmentsOf(pattern);
  std::vector<std::string_view> given = SegmentsOf(path);
  const bool below = wanted.back() == "**";
  if (below) {
    wanted.pop_back();
    if (given.size() < wanted.size()) return false;
    given.resize(wanted.size());
  }
  return std::ranges::equal(wanted, given, [](std::string_view want, std::string_view is) {
    return want.starts_with(':') ? !is.empty() : want == is;
  });
}

bool HostFits(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with("*.")) return pattern == host;
  pattern.remove_prefix(1);
  return host.size() > pattern.size() && host.ends_with(pattern);
}

bool HeaderFits(const MatchSpec::Header& wanted, const RequestView& request) {
  return std::ranges::any_of(request.headers, [&](const HeaderField& field) {
    return EqualsIgnoreCase(field.name, wanted.name) && GlobMatches(wanted.pattern, field.value);
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

std::string ShownPattern(const MatchSpec::Header& header) {
  static constexpr std::string_view kHarmless[] = {
      "accept",     "accept-encoding",  "accept-language",   "content-type",
      "host",       "origin",           "referer",           "upgrade",
      "user-agent", "x-forwarded-host", "x-forwarded-proto", "x-requested-with"};
  const bool shown = std::ranges::any_of(
      kHarmless, [&](std::string_view name) { return EqualsIgnoreCase(header.name, name); });
  return shown || header.pattern == "*" ? header.pattern : "(not shown)";
}

namespace {

/// Explains one reading of the request's path.
std::string WhyNotAsRead(const MatchSpec& spec, const RequestView& request) {
  if (!spec.hosts.empty() && std::ranges::none_of(spec.hosts, [&](const std::string& host) {
        return HostFits(host, request.host);
      })) {
    return Differs("host", Listed(spec.hosts, Same),
                   request.host.empty() ? "not known" : Printable(request.host));
  }
  if (!spec.paths.empty() && std::ranges::none_of(spec.paths, [&](const std::string& path) {
        return PathFits(path, request.path);
      })) {
    return Differs("path", Listed(spec.paths, Same), Printable(request.path));
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
  return Differs("client_ip",
                 Listed(spec.client_ips, [](const Network& network) { return network.Text(); }),
                 request.client.Text());
}

}  // namespace

std::string WhyNot(const MatchSpec& spec, const RequestView& request) {
  std::string why = WhyNotAsRead(spec, request);
  if (why.empty() || request.lenient_path.empty()) return why;
  return WhyNotAsRead(spec, request.Lenient()).empty() ? std::string{} : why;
}

}  // namespace tidegate
