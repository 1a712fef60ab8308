// SPDX-License-Identifier: Apache-2.0
// request_headers and response_headers: what a route changes of the fields that pass it; headers of
// a denial.
#include <algorithm>
#include <unordered_map>

#include "rules/ascii.hpp"
#include "rules/config_gateway.hpp"
#include "rules/denial_spec.hpp"

namespace tidegate {
namespace {

constexpr std::size_t kMaxValue = 4'096;

/// Fields that say how one message is framed on one connection. To edit them would be to lie to
/// the peer about where a body ends.
constexpr std::array<std::string_view, 8> kFraming = {
    "connection", "keep-alive",        "proxy-connection", "te",
    "trailer",    "transfer-encoding", "upgrade",          "content-length"};
/// Fields of a request by which upstreams tell who asks; the gateway writes all of them.
constexpr std::array<std::string_view, 8> kForwarding = {"x-forwarded-for",  "x-forwarded-proto",
                                                         "x-forwarded-host", "x-forwarded-port",
                                                         "forwarded",        "via",
                                                         "x-request-id",     "expect"};

template <std::size_t N>
bool Holds(const std::array<std::string_view, N>& names, std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns why a configuration cannot set or remove the field; empty: it can. Many upstreams read
/// `_` as `-`.
std::string WhyOwned(std::string name, Direction direction) {
  std::replace(name.begin(), name.end(), '_', '-');
  const bool request = direction == Direction::kRequest;
  if (direction == Direction::kDenial && (name == "content-type" || name == "link")) {
    return "has a key of its own: write `" + std::string(name == "link" ? "link" : "content_type") +
           "` beside `headers`";
  }
  if (direction == Direction::kDenial && !Holds(kFraming, name) && IsDenialField(name)) {
    return "cannot be set in a denial: Tidegate writes it, or it describes another body; remove it";
  }
  if (name == "host") {
    return request ? "is set by the route's `host`: write `host: target`, or a name"
                   : "belongs to requests";
  }
  if (Holds(kFraming, name)) return "belongs to each connection, and the gateway writes it itself";
  if (request && Holds(kForwarding, name)) {
    return "is written by the gateway itself, so that upstreams can believe it";
  }
  return {};
}

/// Where a name stands, under `set` or `remove`.
struct EditsDraft {
  HeaderEdits& edits;
  Direction direction;
  std::unordered_map<std::string, Position> set = {};
  std::unordered_map<std::string, Position> removed = {};
};

/// The name of a field that may be changed, the first time that it stands here.
std::optional<std::string> ReadField(const ConfigValue& value, const std::string& text,
                                     const EditsDraft& draft,
                                     std::unordered_map<std::string, Position>& seen) {
  auto name = HeaderName(text);
  if (!name) {
    value.Error("this is not the name of a header");
    return std::nullopt;
  }
  if (const std::string why = WhyOwned(*name, draft.direction); !why.empty()) {
    value.Error(Ticked(*name) + " " + why);
    return std::nullopt;
  }
  if (!seen.emplace(*name, value.at()).second) {
    value.Error("the header " + Ticked(*name) + " stands here twice");
    return std::nullopt;
  }
  return name;
}

/// A value is not shown: it may be a password.
bool CheckValue(const ConfigValue& value, const std::string& text) {
  if (std::any_of(text.begin(), text.end(), IsControl)) {
    value.Error("has a line break or another control character, which no header may hold");
  } else if (Trim(text).size() != text.size()) {
    value.Error("begins or ends with a space, which HTTP does not carry");
  } else if (text.size() > kMaxValue) {
    value.Error("is longer than 4,096 bytes");
  } else {
    return true;
  }
  return false;
}

void ReadSet(const ConfigValue& value, EditsDraft& draft) {
  value.EachEntry([&](const std::string& key, const ConfigValue& name, const ConfigValue& set) {
    auto field = ReadField(name, key, draft, draft.set);
    auto text = set.Text("the header's value");
    if (!text || !CheckValue(set, *text) || !field) return;
    draft.edits.set.push_back({*std::move(field), *std::move(text)});
  });
}

void ReadRemove(const ConfigValue& value, EditsDraft& draft) {
  value.EachItemOrOne("names nothing to remove; leave the key out", [&](const ConfigValue& item) {
    const auto text = item.Text("the name of a header");
    if (!text) return;
    auto field = ReadField(item, *text, draft, draft.removed);
    if (field) draft.edits.remove.push_back(*std::move(field));
  });
}

constexpr std::array<ConfigKey<EditsDraft>, 2> kEditKeys = {
    {{"set", ReadSet}, {"remove", ReadRemove}}};

}  // namespace

void ReadHeaderEdits(const ConfigValue& value, Direction direction, HeaderEdits& edits) {
  EditsDraft draft{.edits = edits, .direction = direction};
  ReadSection(value, kEditKeys, draft);
  const Where where{.parent = &value.where(), .key = "remove"};
  for (const auto& [name, at] : draft.removed) {
    if (!draft.set.contains(name)) continue;
    value.context().Error(at, where,
                          Ticked(name) +
                              " is under `set` too, which stands in the place of all that have the "
                              "name; leave it out here");
  }
}

void ReadDenialHeaders(const ConfigValue& value, std::vector<HeaderEdits::Set>& headers) {
  HeaderEdits edits;
  EditsDraft draft{.edits = edits, .direction = Direction::kDenial};
  ReadSet(value, draft);
  headers = std::move(edits.set);
}

void AppendHeaderEditKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("header_edits", kEditKeys));
}

}  // namespace tidegate
