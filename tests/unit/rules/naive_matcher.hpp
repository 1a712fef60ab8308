// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "identity/request_view.hpp"

/// A matcher that implements MatchSpec as simply as possible, and random specs to compare it with
/// the index.
namespace tidegate::naive {

inline std::vector<std::string> Segments(std::string_view path) {
  std::vector<std::string> segments;
  std::string current;
  for (const char c : path.substr(1)) {
    if (c == '/') {
      segments.push_back(current);
      current.clear();
    } else {
      current += c;
    }
  }
  segments.push_back(current);
  return segments;
}

inline bool PathMatches(std::string_view pattern, std::string_view path) {
  if (pattern == "/**") return true;
  if (!path.starts_with('/')) return false;
  std::vector<std::string> wanted = Segments(pattern);
  const std::vector<std::string> given = Segments(path);
  const bool open = wanted.back() == "**";
  if (open) wanted.pop_back();
  if (open ? given.size() < wanted.size() : given.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool any = wanted[i].size() > 1 && wanted[i][0] == ':';
    if (any ? given[i].empty() : given[i] != wanted[i]) return false;
  }
  return true;
}

inline bool HostMatches(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with("*.")) return pattern == host;
  const std::string_view suffix = pattern.substr(1);
  return host.size() > suffix.size() && host.ends_with(suffix);
}

inline bool Glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return Glob(pattern.substr(1), text) || (!text.empty() && Glob(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && Glob(pattern.substr(1), text.substr(1));
}

template <class List, class Fits>
bool EmptyOrAny(const List& list, Fits&& fits) {
  for (const auto& item : list) {
    if (fits(item)) return true;
  }
  return list.empty();
}

inline bool Matches(const MatchSpec& spec, const RequestView& request) {
  for (const MatchSpec::Header& header : spec.headers) {
    bool found = false;
    for (const HeaderField& field : request.headers) {
      found |= EqualsIgnoreCase(field.name, header.name) && Glob(header.pattern, field.value);
    }
    if (!found) return false;
  }
  for (const MatchSpec& excluded : spec.none) {
    if (Matches(excluded, request)) return false;
  }
  return EmptyOrAny(spec.any, [&](const MatchSpec& inner) { return Matches(inner, request); }) &&
         EmptyOrAny(spec.hosts,
                    [&](const auto& host) { return HostMatches(host, request.host); }) &&
         EmptyOrAny(spec.paths,
                    [&](const auto& path) { return PathMatches(path, request.path); }) &&
         EmptyOrAny(spec.methods, [&](const auto& method) { return method == request.method; }) &&
         EmptyOrAny(spec.client_ips, [&](const Network& network) {
           return request.has_client && network.Contains(request.client);
         });
}

/// A request that owns its strings.
struct Request {
  std::string method, host, path;
  std::vector<std::pair<std::string, std::string>> headers;
  bool has_client = false;
  Address client;
  std::vector<HeaderField> fields;

  [[nodiscard]] RequestView view() const {
    RequestView view;
    view.method = method;
    view.host = host;
    view.path = path;
    view.headers = fields;
    view.has_client = has_client;
    view.client = client;
    return view;
  }
  [[nodiscard]] std::string Text() const {
    std::string text = method + " " + host + " " + path + (has_client ? " " + client.Text() : "");
    for (const auto& [name, value] : headers)
      text.append(" ").append(name).append(": ").append(value);
    return text;
  }
};

/// Returns random specs and requests from small alphabets, so that they match often and in many
/// ways.
class RandomMatches {
 public:
  explicit RandomMatches(std::uint64_t seed) : random_(seed) {}

  /// `depth`: greatest number of levels of `any` and `none`.
  std::vector<MatchSpec> Specs(int depth = 0) {
    std::vector<MatchSpec> specs(1 + Below(40));
    for (MatchSpec& spec : specs) spec = Spec(depth);
    return specs;
  }

  MatchSpec Spec(int depth) {
    MatchSpec spec;
    for (std::uint64_t n = Few(2); n-- > 0;) {
      spec.hosts.push_back(Below(3) == 0 ? "*." + Host() : Host());
    }
    for (std::uint64_t n = Few(3); n-- > 0;) spec.paths.push_back(Pattern());
    for (std::uint64_t n = Few(4); n-- > 0;) spec.methods.push_back(Method());
    for (std::uint64_t n = Few(4); n-- > 0;) {
      spec.headers.push_back(
          {std::string(1, Pick("xyz")), Below(3) == 0 ? Word("ab*") : Word("ab")});
    }
    for (std::uint64_t n = Few(4) * (1 + Below(3)); n-- > 0;) {
      spec.client_ips.push_back(SomeNetwork());
    }
    if (depth == 0) return spec;
    for (std::uint64_t n = Few(2); n-- > 0;) spec.any.push_back(Spec(depth - 1));
    for (std::uint64_t n = Few(2); n-- > 0;) spec.none.push_back(Spec(depth - 1));
    return spec;
  }

  Request NextRequest() {
    Request request;
    request.method = Method();
    request.host = Below(10) == 0 ? "" : Host();
    for (std::uint64_t n = 1 + Below(4); n-- > 0;) request.path += "/" + Segment();
    if (Below(50) == 0) request.path = Below(2) == 0 ? "" : "*";
    for (std::uint64_t n = Below(5); n-- > 0;) {
      request.headers.emplace_back(std::string(1, Pick("xyzXYZ")), Word("ab"));
    }
    for (const auto& [name, value] : request.headers) request.fields.push_back({name, value});
    request.has_client = Below(5) != 0;
    request.client = SomeAddress();
    return request;
  }

 private:
  std::uint64_t Below(std::uint64_t n) { return random_() % n; }
  /// Returns 0 in most cases; in one of `one_in` cases returns 1 to 3.
  std::uint64_t Few(std::uint64_t one_in) { return Below(one_in) == 0 ? 1 + Below(3) : 0; }
  char Pick(std::string_view from) { return from[Below(from.size())]; }

  std::string Word(std::string_view from) {
    std::string word;
    for (std::uint64_t n = Below(3); n-- > 0;) word += Pick(from);
    return word;
  }
  std::string Segment() { return Below(8) == 0 ? "" : std::string(1, Pick("abc")); }
  std::string Host() {
    std::string host(1, Pick("ab"));
    for (std::uint64_t n = Below(3); n-- > 0;) host += std::string(".") + Pick("ab");
    return host;
  }
  std::string Pattern() {
    std::string pattern;
    for (std::uint64_t n = Below(4); n-- > 0;) pattern += Below(3) == 0 ? "/:p" : "/" + Segment();
    if (pattern.empty() || Below(3) == 0) pattern += "/**";
    return pattern;
  }
  std::string Method() { return Below(2) == 0 ? "GET" : Below(2) == 0 ? "POST" : "PUT"; }

  Address SomeAddress() {
    if (Below(3) == 0) return Address::Parse(Below(2) == 0 ? "2001:db8::1" : "::1").value();
    const std::string text = "10.0." + std::to_string(Below(2)) + "." + std::to_string(Below(4));
    return Address::Parse(text).value();
  }
  Network SomeNetwork() {
    const Address address = SomeAddress();
    const bool v4 = address.is_v4();
    const int bits = static_cast<int>(Below(v4 ? 33 : 129));
    const Address base = address.Masked(v4 ? 96 + bits : bits);
    return Network::Parse(base.Text() + "/" + std::to_string(bits)).value();
  }

  std::mt19937_64 random_;
};

}  // namespace tidegate::naive
