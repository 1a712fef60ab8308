// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rules/address.hpp"

namespace tidegate {

/// What a rule, a route, or an entry of `deny` or `exempt`, applies to. Empty lists match
/// everything; all given conditions must hold, any entry of one list will do, but for `headers`, of
/// which all must match, and `none`, of which none may.
struct MatchSpec {
  struct Header {
    std::string name;     ///< Lower case.
    std::string pattern;  ///< Exact, or with `*` for any run of characters.
    /// As the configuration has it, `${VARIABLE}`, if the environment completed the pattern: then
    /// the pattern may be a secret. Empty: the pattern itself.
    std::string written = {};
    /// Headers that match the same are equal, however they were written.
    friend bool operator==(const Header& a, const Header& b) noexcept {
      return a.name == b.name && a.pattern == b.pattern;
    }
  };
  std::vector<std::string> hosts;    ///< Lower case: `api.example.com`, `*.example.com`.
  std::vector<std::string> paths;    ///< `/v1/login`, `/v1/**`, `/users/:id/posts`; normalised.
  std::vector<std::string> methods;  ///< `GET`, ...
  std::vector<Header> headers;       ///< All must match.
  std::vector<Network> client_ips;
  std::vector<MatchSpec> any = {};   ///< If there are any, at least one of them must match.
  std::vector<MatchSpec> none = {};  ///< `not`: none of them may match.
  /// The paths as the configuration has them, if `paths` were turned to lower case.
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

}  // namespace tidegate
