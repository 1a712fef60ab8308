// SPDX-License-Identifier: Apache-2.0
// match, deny and exempt: the requests that rules, routes and lists apply to.
#include <algorithm>
#include <memory_resource>

#include "base/ascii.hpp"
#include "config/sections.hpp"
#include "identity/path.hpp"
#include "identity/request_path.hpp"
#include "rules/foreign_path.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kEmptyList =
    "an empty list would match everything; leave the key out, or write what it should match";

constexpr std::size_t kMaxPath = 2'048;
constexpr std::size_t kMaxHost = 255;

void ReadHost(const ConfigValue& value, MatchSpec& match) {
  const auto text = value.Text("a host, as in `api.example.com` or `*.example.com`");
  if (!text) return;
  std::string host = Lowered(*text);
  const bool wild = host.starts_with("*.");
  const std::string_view name = std::string_view{host}.substr(wild ? 2 : 0);
  if (name.contains('*')) {
    return value.Error("`*` may only replace whole labels at the beginning, as in `*.example.com`");
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(name, memory);
  if (!normal || host.size() > kMaxHost) {
    return value.Error(Backticked(*text) +
                       " is not a host: write it without scheme and path, and international names "
                       "in their `xn--` form");
  }
  if (*normal != name) {
    return value.Error("a host is compared without port and final dot: write " +
                       Backticked((wild ? "*." : "") + std::string{*normal}));
  }
  match.hosts.push_back(std::move(host));
}

/// Returns what is wrong with a path that does not begin with a slash.
std::string WithoutSlash(std::string_view path) {
  if (path.empty()) return "is empty: a path begins with `/`";
  const std::size_t scheme = path.find("://");
  if (scheme == std::string_view::npos) {
    return Backticked(path) + " does not begin with `/`: write " +
           Backticked("/" + std::string{path});
  }
  const std::size_t slash = std::min(path.find('/', scheme + 3), path.size());
  return Backticked(path) + " is a URL: write only its path, " +
         Backticked(slash == path.size() ? "/" : path.substr(slash)) +
         ", and its host under `host`";
}

/// Returns the message for a pattern of another router or a regular expression.
std::string ForeignMessage(std::string_view path, const ForeignPath& foreign) {
  std::string message = Backticked(path) + " is not a pattern here: " +
                        (foreign.exact ? "write " : "the closest is ") + foreign.write +
                        "; `:name` matches one segment, `/**` at the end matches everything below, "
                        "and regular expressions are not supported";
  std::pmr::monotonic_buffer_resource memory;
  const auto literal = NormalizePath(path, Slashes::kMerge, memory);
  if (literal && *literal != path && !ReadForeignPath(*literal)) {
    message += "; for these characters themselves write " + Backticked(*literal);
  }
  return message;
}

/// Returns what is wrong with the text of a path pattern; empty if nothing is.
std::string WrongInPath(std::string_view path) {
  if (path.size() > kMaxPath) return "a path here has at most 2,048 characters";
  if (const auto foreign = ReadForeignPath(path)) return ForeignMessage(path, *foreign);
  if (!path.starts_with('/')) return WithoutSlash(path);
  if (path.contains('?') || path.contains('#')) {
    return Backticked(path) + " has a query or a fragment: write " +
           Backticked(path.substr(0, path.find_first_of("?#"))) +
           ", since only the path is compared";
  }
  if (path.ends_with("/:") || path.contains("/:/")) {
    return Backticked(path) + " has a parameter without a name: write it as in `/users/:id`";
  }
  return {};
}

void ReadPath(const ConfigValue& value, MatchSpec& match) {
  auto text = value.Text("a path, as in `/v1/**`");
  if (!text) return;
  const std::string_view path = *text;
  const bool open = path.ends_with("/**");
  const std::string_view fixed = path.substr(0, path.size() - (open ? 3 : 0));
  if (std::string wrong = WrongInPath(path); !wrong.empty()) return value.Error(wrong);
  if (fixed.size() > 2 && fixed.ends_with('$') && !fixed.ends_with("/$")) {
    value.Warning(Backticked(path) +
                  " ends with `$`, which matches only a literal `$`, not the end of the path; if "
                  "you meant a regular expression, write " +
                  Backticked(fixed.substr(0, fixed.size() - 1)));
  }
  if (open && fixed.empty()) {
    match.paths.push_back(*std::move(text));
    return;
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto form = NormalizePath(fixed, Slashes::kMerge, memory);
  if (!form) {
    return value.Error(Backticked(path) + " is not a path: " + std::string(Message(form.error())));
  }
  std::string normal{*form};
  if (open) {
    if (normal.ends_with('/')) normal.pop_back();
    normal += "/**";
  }
  if (normal != path) {
    return value.Error(Backticked(path) +
                       " is not in normal form, in which paths are compared: write " +
                       Backticked(normal));
  }
  const std::string_view canonical = CanonicalPath(normal, /*ignore_case=*/false, memory);
  const auto read = ReadRequestPath(open ? canonical.substr(0, canonical.size() - 3) : canonical,
                                    {.encoded_slashes = EncodedSlashes::kMatch}, memory);
  if (!read)
    return value.Error(Backticked(path) +
                       " matches nothing: " + std::string(Message(read.error())));
  if (read->lenient != read->canonical) {
    return value.Error(Backticked(path) +
                       " can never match: paths are compared without `;` parameters, encoded "
                       "slashes, and white space or dots at the end of a segment; write " +
                       Backticked(std::string(read->lenient) + (open ? "/**" : "")));
  }
  match.paths.emplace_back(canonical);
}

void ReadMethod(const ConfigValue& value, MatchSpec& match) {
  auto text = value.Text("a method, as in `GET`");
  if (!text) return;
  if (!IsToken(*text)) return value.Error(Backticked(*text) + " is not a method");
  const std::string upper = Uppered(*text);
  if (upper != *text) {
    return value.Error("methods are written in upper case; did you mean " + Backticked(upper) +
                       "?");
  }
  match.methods.push_back(*std::move(text));
}

void ReadHeaders(const ConfigValue& value, MatchSpec& match) {
  if (value.is_empty_map()) {
    return value.Error("an empty map would match everything; leave the key out");
  }
  value.EachEntry([&](const std::string& key, const ConfigValue& key_value,
                      const ConfigValue& pattern_value) {
    const auto name = HeaderName(key);
    if (!name) return key_value.Error("this is not the name of a header");
    if (std::ranges::find(match.headers, *name, &MatchSpec::Header::name) != match.headers.end()) {
      return key_value.Error("the header " + Backticked(*name) + " is listed twice");
    }
    const auto pattern = pattern_value.Text("a pattern, as in `BadBot*`");
    if (!pattern) return;
    if (pattern->empty()) return pattern_value.Error("is empty; for any value write `*` in quotes");
    const std::string& written = pattern_value.node().text;
    match.headers.push_back({*name, *pattern, *pattern == written ? "" : written});
  });
}

/// How deep `any` and `not` may be nested.
constexpr int kMaxMatchDepth = 4;

/// A match, and how many matches contain it.
struct MatchDraft : MatchSpec {
  int depth = 0;
};

MatchSpec ReadNested(const ConfigValue& value, int depth);

/// Reads a match inside `outer` into `matches`. `empty` is the error for one without conditions.
void ReadInner(const ConfigValue& value, const MatchDraft& outer, std::string_view empty,
               std::vector<MatchSpec>& matches) {
  if (value.is_empty_map()) return value.Error(empty);
  matches.push_back(ReadNested(value, outer.depth + 1));
}

void ReadAny(const ConfigValue& value, MatchDraft& match) {
  if (value.is_empty_list()) {
    return value.Error("has no alternatives, so that nothing could match; leave the key out");
  }
  value.EachItem([&](const ConfigValue& item) {
    ReadInner(item, match, "an empty match matches everything, so that `any` would always match",
              match.any);
  });
}

void ReadNot(const ConfigValue& value, MatchDraft& match) {
  constexpr std::string_view kEmpty =
      "an empty match would exclude everything; write which requests to exclude";
  if (!value.is_list()) return ReadInner(value, match, kEmpty, match.none);
  if (value.is_empty_list()) {
    return value.Error("excludes nothing; leave the key out, or write what it should exclude");
  }
  value.EachItem([&](const ConfigValue& item) { ReadInner(item, match, kEmpty, match.none); });
}

template <void (*kRead)(const ConfigValue&, MatchSpec&)>
void ReadEach(const ConfigValue& value, MatchDraft& match) {
  value.EachItemOrOne(kEmptyList, [&](const ConfigValue& item) { kRead(item, match); });
}

void ReadClientIp(const ConfigValue& value, MatchSpec& match) {
  if (const auto network = ReadNetwork(value)) match.client_ips.push_back(*network);
}

constexpr auto kMatchFields = Fields({
    Custom<ReadEach<ReadHost>>("host", kTextsType,
                               "`api.example.com`, or `*.example.com` for every name below it. "
                               "Case does not count, and there is no port."),
    Custom<ReadEach<ReadPath>>("path", kTextsType,
                               "`/v1/login` exactly; `/v1/**` and all below it; `/users/:id/posts` "
                               "with any one segment for `:id`. In normal form."),
    Custom<ReadEach<ReadMethod>>("method", kTextsType, "`GET`, `POST`, ... in upper case."),
    Custom<ReadHeaders, MatchDraft>(
        "header",
        ValueType{
            R"({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "minLength": 1}})",
            "a map from name to pattern"},
        "Header names and the patterns that their values must match; `*` is any run of characters. "
        "All must match."),
    Custom<ReadEach<ReadClientIp>>("client_ip", kTextsType,
                                   "Addresses and networks: `10.0.0.0/8`, `2001:db8::/32`."),
    Custom<ReadAny>(
        "any",
        ValueType{R"({"type": "array", "items": {"$ref": "#/$defs/some_match"}, "minItems": 1})",
                  "a list of matches", nullptr, &kSomeMatchType},
        "Alternatives, of which at least one must match."),
    Custom<ReadNot>("not",
                    ValueType{R"({"anyOf": [{"$ref": "#/$defs/some_match"},
        {"type": "array", "items": {"$ref": "#/$defs/some_match"}, "minItems": 1}]})",
                              "a match or a list of matches", nullptr, &kSomeMatchType},
                    "Exceptions, none of which may match."),
});
constexpr Section<MatchDraft> kMatchTable("match", kMatchFields);

MatchSpec ReadNested(const ConfigValue& value, int depth) {
  MatchDraft draft;
  draft.depth = depth;
  if (depth <= kMaxMatchDepth) {
    ReadSection(value, kMatchTable, draft);
  } else {
    value.Error("`any` and `not` are nested more than 4 levels deep");
  }
  return draft;
}

void ReadMatches(const ConfigValue& value, std::string_view verb, std::vector<MatchSpec>& matches) {
  value.EachItem([&](const ConfigValue& item) {
    if (item.is_empty_map()) {
      return item.Error("an empty match would " + std::string{verb} +
                        " every request; write which requests");
    }
    matches.push_back(ReadMatch(item));
  });
}

}  // namespace

constinit const SectionInfo kMatchSection = kMatchTable;
constinit const ValueType kSomeMatchType{
    .schema = R"({"description": "A match with at least one condition.",
        "allOf": [{"$ref": "#/$defs/match"}], "minProperties": 1})",
    .shown = "a match",
    .section = &kMatchSection,
    .name = "some_match"};

bool IsToken(std::string_view text) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() &&
         std::ranges::all_of(text, [&](char c) { return IsAlphanumeric(c) || kMarks.contains(c); });
}

bool IsPrintable(std::string_view text, char least) noexcept {
  return std::ranges::all_of(text, [&](char c) { return c >= least && c < '\x7f'; });
}

std::optional<std::string> HeaderName(std::string_view text) {
  if (!IsToken(text) || text.size() > 256) return std::nullopt;
  return Lowered(text);
}

MatchSpec ReadMatch(const ConfigValue& value) { return ReadNested(value, 0); }

void ReadDeny(const ConfigValue& value, Config& config) { ReadMatches(value, "deny", config.deny); }

void ReadExempt(const ConfigValue& value, Config& config) {
  ReadMatches(value, "exempt", config.exempt);
}

}  // namespace tidegate
