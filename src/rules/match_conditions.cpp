// SPDX-License-Identifier: Apache-2.0
#include "rules/match_conditions.hpp"

#include <algorithm>
#include <cstring>

#include "rules/match_index.hpp"
#include "rules/spaces.hpp"

namespace tidegate {
namespace {

/// With more networks a search costs less than comparing with each.
constexpr std::uint32_t kMaxInline = 4;

bool HasHeader(const RequestView& request, std::string_view name,
               std::string_view pattern) noexcept {
  return std::any_of(request.headers.begin(), request.headers.end(), [&](const HeaderField& field) {
    return EqualsIgnoreCase(field.name, name) && GlobMatches(pattern, TrimSpaces(field.value));
  });
}

}  // namespace

NetworkSet::NetworkSet(std::span<const Network> networks) {
  for (const Network& network : networks) networks_.emplace_back(network.bits(), network.base());
  std::sort(networks_.begin(), networks_.end());
  for (const auto& [bits, base] : networks_) {
    if (lengths_.empty() || lengths_.back() != bits) lengths_.push_back(bits);
  }
}

bool NetworkSet::Contains(const Address& address) const noexcept {
  const int shortest = address.is_v4() ? Network::kV4Bits : 0;
  return std::any_of(lengths_.begin(), lengths_.end(), [&](int bits) {
    return bits >= shortest && std::binary_search(networks_.begin(), networks_.end(),
                                                  std::pair(bits, address.Masked(bits)));
  });
}

/// Takes off the front what Add wrote.
class MatchConditions::Reader {
 public:
  explicit Reader(const char* at) noexcept : at_(at) {}

  std::uint32_t Number() noexcept {
    std::uint32_t number = 0;
    std::memcpy(&number, at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }
  std::string_view Text() noexcept {
    const std::uint32_t size = Number();
    at_ += size;
    return {at_ - size, size};
  }

 private:
  const char* at_;
};

void MatchConditions::Write(std::size_t number) {
  const auto narrow = static_cast<std::uint32_t>(number);
  bytes_.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
}

void MatchConditions::Write(std::string_view text) {
  Write(text.size());
  bytes_ += text;
}

void MatchConditions::Write(const std::vector<std::string>& texts) {
  Write(texts.size());
  for (const std::string& text : texts) Write(text);
}

template <class F>
void MatchConditions::WriteSized(F write) {
  const std::size_t begin = bytes_.size();
  Write(std::size_t{0});
  write();
  const auto size = static_cast<std::uint32_t>(bytes_.size() - begin - sizeof(std::uint32_t));
  std::memcpy(bytes_.data() + begin, &size, sizeof(size));
}

void MatchConditions::Add(const MatchSpec& spec) {
  const bool empty = spec.methods.empty() && spec.headers.empty() && spec.client_ips.empty() &&
                     spec.any.empty() && spec.none.empty();
  begins_.push_back(empty ? kNone : static_cast<std::uint32_t>(bytes_.size()));
  if (!empty) WriteRecord(spec);
}

/// A record: the number of methods, with kNested if `any` or `none` follow; with kNested the size
/// of the own conditions, to skip them; the own conditions; with kNested `any` and `none`.
void MatchConditions::WriteRecord(const MatchSpec& spec) {
  if (spec.any.empty() && spec.none.empty()) {
    Write(spec.methods.size());
    return WriteOwn(spec);
  }
  Write(spec.methods.size() | kNested);
  WriteSized([&] { WriteOwn(spec); });
  WriteNested(spec.any);
  WriteNested(spec.none);
}

void MatchConditions::WriteOwn(const MatchSpec& spec) {
  for (const std::string& method : spec.methods) Write(method);
  Write(spec.headers.size());
  for (const MatchSpec::Header& header : spec.headers) {
    Write(header.name);
    Write(header.pattern);
  }
  Write(spec.client_ips.size());
  if (spec.client_ips.size() > kMaxInline) {
    Write(networks_.size());
    networks_.emplace_back(spec.client_ips);
    return;
  }
  for (const Network& network : spec.client_ips) {
    const auto& base = network.base().bytes();
    Write(static_cast<std::size_t>(network.bits()));
    Write(std::string_view(reinterpret_cast<const char*>(base.data()), base.size()));
  }
}

/// Each spec with its size in front, so that one whose outcome is known can be skipped.
void MatchConditions::WriteNested(const std::vector<MatchSpec>& specs) {
  Write(specs.size());
  for (const MatchSpec& spec : specs) {
    WriteSized([&] {
      Write(spec.hosts);
      Write(spec.paths);
      WriteRecord(spec);
    });
  }
}

bool MatchConditions::Hold(std::uint32_t spec, const RequestView& request,
                           Readings readings) const noexcept {
  return IsEmpty(spec) || RecordHolds(Reader(bytes_.data() + begins_[spec]), request, readings);
}

bool MatchConditions::RecordHolds(Reader reader, const RequestView& request,
                                  Readings readings) const noexcept {
  const std::uint32_t methods = reader.Number();
  if ((methods & kNested) == 0) return OwnHold(reader, methods, request);
  const std::string_view own = reader.Text();
  return OwnHold(Reader(own.data()), methods & ~kNested, request) &&
         NestedHold(reader, request, readings);
}

bool MatchConditions::OwnHold(Reader reader, std::uint32_t methods,
                              const RequestView& request) const noexcept {
  bool holds = methods == 0;
  for (std::uint32_t i = 0; i < methods; ++i) holds |= reader.Text() == request.method;
  if (!holds) return false;
  for (std::uint32_t i = reader.Number(); i > 0; --i) {
    const std::string_view name = reader.Text();
    if (!HasHeader(request, name, reader.Text())) return false;
  }
  const std::uint32_t networks = reader.Number();
  if (networks == 0) return true;
  if (!request.has_client) return false;
  if (networks > kMaxInline) return networks_[reader.Number()].Contains(request.client);
  const int shortest = request.client.is_v4() ? Network::kV4Bits : 0;
  for (std::uint32_t i = 0; i < networks; ++i) {
    const int bits = static_cast<int>(reader.Number());
    const std::string_view base = reader.Text();
    const Address masked = request.client.Masked(bits);
    if (bits >= shortest && std::memcmp(masked.bytes().data(), base.data(), base.size()) == 0) {
      return true;
    }
  }
  return false;
}

bool MatchConditions::NestedHold(Reader reader, const RequestView& request,
                                 Readings readings) const noexcept {
  const std::uint32_t any = reader.Number();
  bool holds = any == 0;
  for (std::uint32_t i = 0; i < any; ++i) {
    const std::string_view spec = reader.Text();
    holds = holds || SpecHolds(Reader(spec.data()), request, readings);
  }
  if (!holds) return false;
  for (std::uint32_t i = reader.Number(); i > 0; --i) {
    if (SpecHolds(Reader(reader.Text().data()), request, Opposite(readings))) return false;
  }
  return true;
}

/// The whole of a nested spec, its hosts and paths too.
bool MatchConditions::SpecHolds(Reader reader, const RequestView& request,
                                Readings readings) const noexcept {
  const std::uint32_t hosts = reader.Number();
  bool holds = hosts == 0;
  for (std::uint32_t i = 0; i < hosts; ++i) holds |= HostMatches(reader.Text(), request.host);
  if (!holds) return false;
  const std::uint32_t paths = reader.Number();
  holds = paths == 0;
  for (std::uint32_t i = 0; i < paths; ++i) {
    const std::string_view pattern = reader.Text();
    holds = holds || request.PathHolds(readings, [pattern](std::string_view path) {
      return PathMatches(pattern, path);
    });
  }
  return holds && RecordHolds(reader, request, readings);
}

bool HostMatches(std::string_view pattern, std::string_view host) noexcept {
  if (!pattern.starts_with("*.")) return pattern == host;
  pattern.remove_prefix(1);
  return host.size() > pattern.size() && host.ends_with(pattern);
}

bool PathMatches(std::string_view pattern, std::string_view path) noexcept {
  if (pattern == "/**") return true;
  if (!path.starts_with('/')) return false;  // `*` of OPTIONS.
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
  std::size_t star = std::string_view::npos;  // The last `*` passed, and where its run ends now.
  std::size_t run_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {  // Before the literal: text may hold a '*' too.
      star = p++;
      run_end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {  // Only the last run needs to grow.
      p = star + 1;
      t = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace tidegate
