// SPDX-License-Identifier: Apache-2.0
// match, deny and exempt: the requests that rules, routes and lists apply to.
#include <algorithm>
#include <memory_resource>

#include "rules/ascii.hpp"
#include "rules/config_sections.hpp"
#include "rules/foreign_path.hpp"
#include "rules/path.hpp"
#include "rules/request_path.hpp"

namespace tidegate {
namespace {

constexpr std::string_view kEmptyList =
    "an empty list would match everything; leave the key out, or write what it should match";

constexpr std::size_t kMaxPath = 2'048;
constexpr std::size_t kMaxHost = 255;

char Upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

template <class F>
std::string Mapped(std::string_view text, F f) {
  std::string mapped{text};
  std::transform(mapped.begin(), mapped.end(), mapped.begin(), f);
  return mapped;
}

/// RFC 9110's token: what methods and header names are made of.
bool IsToken(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}

void ReadHost(const ConfigValue& value, MatchSpec& match) {
  const auto text = value.Text("a host, as in `api.example.com` or `*.example.com`");
  if (!text) return;
  std::string host = Mapped(*text, Lower);
  const bool wild = host.starts_with("*.");
  const std::string_view name = std::string_view{host}.substr(wild ? 2 : 0);
  if (name.find('*') != std::string_view::npos) {
    return value.Error("`*` may only stand for whole labels in front, as in `*.example.com`");
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto normal = NormalizeHost(name, memory);
  if (!normal || host.size() > kMaxHost) {
    return value.Error(Ticked(*text) +
                       " is not a host: write it without scheme and path, and international names "
                       "in their `xn--` form");
  }
  if (*normal != name) {
    return value.Error("a host is compared without port and final dot: write " +
                       Ticked((wild ? "*." : "") + std::string{*normal}));
  }
  match.hosts.push_back(std::move(host));
}

/// Returns what is wrong with a path that does not begin with a slash.
std::string WithoutSlash(std::string_view path) {
  if (path.empty()) return "is empty: a path begins with `/`";
  const std::size_t scheme = path.find("://");
  if (scheme == std::string_view::npos) {
    return Ticked(path) + " does not begin with `/`: write " + Ticked("/" + std::string{path});
  }
  const std::size_t slash = std::min(path.find('/', scheme + 3), path.size());
  return Ticked(path) + " is a URL: write only its path, " +
         Ticked(slash == path.size() ? "/" : path.substr(slash)) + ", and its host under `host`";
}

/// Returns the message for a pattern of another router or a regular expression.
std::string ForeignMessage(std::string_view path, const ForeignPath& foreign) {
  std::string message =
      Ticked(path) + " is not a pattern here: " + (foreign.exact ? "write " : "the closest is ") +
      foreign.write +
      "; `:name` matches one segment, `/**` at the end matches everything below, and regular "
      "expressions are not supported";
  std::pmr::monotonic_buffer_resource memory;
  const auto literal = NormalizePath(path, Slashes::kMerge, memory);
  if (literal && *literal != path && !ReadForeignPath(*literal)) {
    message += "; for these characters themselves write " + Ticked(*literal);
  }
  return message;
}

/// Returns what is wrong with the text of a path pattern; empty if nothing is.
std::string WrongInPath(std::string_view path) {
  if (path.size() > kMaxPath) return "a path here has at most 2,048 characters";
  if (const auto foreign = ReadForeignPath(path)) return ForeignMessage(path, *foreign);
  if (!path.starts_with('/')) return WithoutSlash(path);
  if (path.find('?') != std::string_view::npos || path.find('#') != std::string_view::npos) {
    return Ticked(path) + " has a query or a fragment: write " +
           Ticked(path.substr(0, path.find_first_of("?#"))) + ", since only the path is compared";
  }
  if (path.ends_with("/:") || path.find("/:/") != std::string_view::npos) {
    return Ticked(path) + " has a parameter without a name: write it as in `/users/:id`";
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
    value.Warning(
        Ticked(path) +
        " ends with `$`, which matches only a literal `$`, not the end of the path; if you "
        "meant a regular expression, write " +
        Ticked(fixed.substr(0, fixed.size() - 1)));
  }
  if (open && fixed.empty()) {
    match.paths.push_back(*std::move(text));
    return;
  }
  std::pmr::monotonic_buffer_resource memory;
  const auto form = NormalizePath(fixed, Slashes::kMerge, memory);
  if (!form) {
    return value.Error(Ticked(path) + " is not a path: " + std::string(Message(form.error())));
  }
  std::string normal{*form};
  if (open) {
    if (normal.ends_with('/')) normal.pop_back();
    normal += "/**";
  }
  if (normal != path) {
    return value.Error(Ticked(path) +
                       " is not in normal form, in which paths are compared: write " +
                       Ticked(normal));
  }
  const std::string_view canonical = CanonicalPath(normal, /*ignore_case=*/false, memory);
  const auto read = ReadRequestPath(open ? canonical.substr(0, canonical.size() - 3) : canonical,
                                    {.encoded_slashes = EncodedSlashes::kMatch}, memory);
  if (!read)
    return value.Error(Ticked(path) + " matches nothing: " + std::string(Message(read.error())));
  if (read->lenient != read->canonical) {
    return value.Error(
        Ticked(path) +
        " can never match: paths are compared without `;` parameters, encoded slashes, and white "
        "space or dots at the end of a segment; write " +
        Ticked(std::string(read->lenient) + (open ? "/**" : "")));
  }
  match.paths.emplace_back(canonical);
}

void ReadMethod(const ConfigValue& value, MatchSpec& match) {
  auto text = value.Text("a method, as in `GET`");
  if (!text) return;
  if (!IsToken(*text)) return value.Error(Ticked(*text) + " is not a method");
  const std::string upper = Mapped(*text, Upper);
  if (upper != *text) {
    return value.Error("methods are written in upper case; did you mean " + Ticked(upper) + "?");
  }
  match.methods.push_back(*std::move(text));
}

void ReadHeaders(const ConfigValue& value, MatchSpec& match) {
  if (value.is_map() && value.node().children.empty()) {
    return value.Error("an empty map would match everything; leave the key out");
  }
  value.EachEntry(
      [&](const std::string& key, const ConfigValue& key_value, const ConfigValue& pattern_value) {
        const auto name = HeaderName(key);
        if (!name) return key_value.Error("this is not the name of a header");
        for (const MatchSpec::Header& other : match.headers) {
          if (other.name == *name) {
            return key_value.Error("the header " + Ticked(*name) + " stands here twice");
          }
        }
        const auto pattern = pattern_value.Text("a pattern, as in `BadBot*`");
        if (!pattern) return;
        if (pattern->empty()) {
          return pattern_value.Error("is empty; for any value write `*` in quotes");
        }
        const std::string& written = pattern_value.node().text;
        match.headers.push_back({*name, *pattern, *pattern == written ? "" : written});
      });
}

/// How deep `any` and `not` may stand in each other.
constexpr int kMaxMatchDepth = 4;

/// A match and how many matches it stands in.
struct MatchDraft {
  MatchSpec& spec;
  int depth = 0;
};

void ReadNested(const ConfigValue& value, int depth, MatchSpec& match);

/// `empty` says what an entry without conditions would do.
void ReadInner(const ConfigValue& value, MatchDraft& outer, std::string_view empty,
               std::vector<MatchSpec>& matches) {
  if (value.is_map() && value.node().children.empty()) return value.Error(empty);
  ReadNested(value, outer.depth + 1, matches.emplace_back());
}

void ReadAny(const ConfigValue& value, MatchDraft& draft) {
  if (value.is_list() && value.node().children.empty()) {
    return value.Error("has no alternatives, so that nothing could match; leave the key out");
  }
  value.EachItem([&](const ConfigValue& item) {
    ReadInner(item, draft, "an empty match matches everything, so that `any` would always hold",
              draft.spec.any);
  });
}

void ReadNot(const ConfigValue& value, MatchDraft& draft) {
  constexpr std::string_view kEmpty = "an empty match would exclude everything; say what";
  if (!value.is_list()) return ReadInner(value, draft, kEmpty, draft.spec.none);
  if (value.node().children.empty()) {
    return value.Error("excludes nothing; leave the key out, or write what it should exclude");
  }
  value.EachItem([&](const ConfigValue& item) { ReadInner(item, draft, kEmpty, draft.spec.none); });
}

constexpr std::array<ConfigKey<MatchDraft>, 7> kMatchKeys = {{
    {"host",
     [](const ConfigValue& v, MatchDraft& d) {
       v.EachItemOrOne(kEmptyList, [&](const ConfigValue& item) { ReadHost(item, d.spec); });
     }},
    {"path",
     [](const ConfigValue& v, MatchDraft& d) {
       v.EachItemOrOne(kEmptyList, [&](const ConfigValue& item) { ReadPath(item, d.spec); });
     }},
    {"method",
     [](const ConfigValue& v, MatchDraft& d) {
       v.EachItemOrOne(kEmptyList, [&](const ConfigValue& item) { ReadMethod(item, d.spec); });
     }},
    {"header", [](const ConfigValue& v, MatchDraft& d) { ReadHeaders(v, d.spec); }},
    {"client_ip",
     [](const ConfigValue& v, MatchDraft& d) {
       v.EachItemOrOne(kEmptyList, [&](const ConfigValue& item) {
         if (const auto network = ReadNetwork(item)) d.spec.client_ips.push_back(*network);
       });
     }},
    {"any", ReadAny},
    {"not", ReadNot},
}};

void ReadNested(const ConfigValue& value, int depth, MatchSpec& match) {
  if (depth > kMaxMatchDepth) {
    return value.Error("`any` and `not` stand in each other more than 4 levels deep");
  }
  MatchDraft draft{.spec = match, .depth = depth};
  ReadSection(value, kMatchKeys, draft);
}

void ReadMatches(const ConfigValue& value, std::string_view verb, std::vector<MatchSpec>& matches,
                 std::vector<Position>& places) {
  value.EachItem([&](const ConfigValue& item) {
    if (item.is_map() && item.node().children.empty()) {
      return item.Error("an empty match would " + std::string{verb} + " everybody; say whom");
    }
    places.push_back(item.at());
    ReadMatch(item, matches.emplace_back());
  });
}

}  // namespace

std::optional<std::string> HeaderName(std::string_view text) {
  if (!IsToken(text) || text.size() > 256) return std::nullopt;
  return Mapped(text, Lower);
}

void ReadMatch(const ConfigValue& value, MatchSpec& match) { ReadNested(value, 0, match); }

void ReadDeny(const ConfigValue& value, ConfigDraft& draft) {
  ReadMatches(value, "deny", draft.config.deny, draft.places.deny);
}

void ReadExempt(const ConfigValue& value, ConfigDraft& draft) {
  ReadMatches(value, "exempt", draft.config.exempt, draft.places.exempt);
}

void AppendMatchKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("match", kMatchKeys));
}

}  // namespace tidegate
