// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "identity/request_view.hpp"

namespace tidegate {

/// The requests that a rule, a route, or an entry of `deny` or `exempt` applies to. All conditions
/// must hold. An empty list matches every request. At least one entry of most lists must match. All
/// entries of `headers` must match, and no entry of `none` may match.
struct MatchSpec {
  struct Header {
    std::string name;     ///< In lower case.
    std::string pattern;  ///< An exact value; `*` stands for any sequence of characters.
    /// The text in the configuration, such as `${VARIABLE}`, if the pattern contains environment
    /// variables: then the pattern may be a secret. Empty: the text is the pattern itself.
    std::string written = {};
    /// Two conditions are equal if they match the same values, however they are written.
    friend bool operator==(const Header& a, const Header& b) noexcept {
      return a.name == b.name && a.pattern == b.pattern;
    }
  };
  std::vector<std::string> hosts;    ///< In lower case: `api.example.com`, `*.example.com`.
  std::vector<std::string> paths;    ///< `/v1/login`, `/v1/**`, `/users/:id/posts`; normalised.
  std::vector<std::string> methods;  ///< `GET`, ...
  std::vector<Header> headers;       ///< All must match.
  std::vector<Network> client_ips;
  std::vector<MatchSpec> any = {};   ///< Unless the list is empty, at least one entry must match.
  std::vector<MatchSpec> none = {};  ///< From `not`: no entry may match.
  /// The paths as written in the configuration, if `paths` were turned to lower case.
  std::vector<std::string> written_paths = {};

  /// Returns the paths in the form in which messages show them.
  [[nodiscard]] const std::vector<std::string>& ShownPaths() const noexcept {
    return written_paths.empty() ? paths : written_paths;
  }

  friend bool operator==(const MatchSpec&, const MatchSpec&) = default;
};

/// Turns path patterns to lower case, for configurations that ignore the case of paths.
void IgnorePathCase(MatchSpec& spec);

/// Calls `visit` for every header condition, also in `any` and `none`.
template <class Visit>
void EachHeader(const MatchSpec& spec, const Visit& visit) {
  for (const MatchSpec::Header& header : spec.headers) visit(header);
  for (const MatchSpec& inner : spec.any) EachHeader(inner, visit);
  for (const MatchSpec& inner : spec.none) EachHeader(inner, visit);
}

/// Returns true if a path matches a pattern such as `/v1/**` or `/users/:id`, as in MatchIndex.
[[nodiscard]] bool PathMatches(std::string_view pattern, std::string_view path) noexcept;
/// Returns true if `pattern` is the host, or is `*.example.com` and the host is below example.com.
[[nodiscard]] bool HostMatches(std::string_view pattern, std::string_view host) noexcept;
/// Returns true if `text` matches `pattern`, where `*` matches any run of characters. Takes linear
/// time in practice, at worst the product of both lengths; never recursive.
[[nodiscard]] bool GlobMatches(std::string_view pattern, std::string_view text) noexcept;
/// Returns true if any line of the header `name` matches `pattern`.
[[nodiscard]] bool HasHeader(const RequestView& request, std::string_view name,
                             std::string_view pattern) noexcept;

/// Returns the reason why `spec` does not match `request`, as text for people; empty if it matches.
/// Checks one condition after the other, slowly and plainly, and must agree with MatchIndex. The
/// text may show values of the configuration (header patterns as ShownPattern returns them), but
/// not the request's headers, cookies or query, because some of them are secrets.
[[nodiscard]] std::string WhyNot(const MatchSpec& spec, const RequestView& request);

/// Returns a header's pattern as the configuration has it: `gold` or, from the environment,
/// `${VARIABLE}`. Returns `(not shown)` for headers with credentials, such as `x-api-key`.
[[nodiscard]] std::string ShownPattern(const MatchSpec::Header& header);

}  // namespace tidegate
