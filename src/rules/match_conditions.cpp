// SPDX-License-Identifier: Apache-2.0
#include "rules/match_conditions.hpp"

#include <algorithm>
#include <cstring>

namespace tidegate {
namespace {

/// A longer list of networks is searched by NetworkSet: that costs less than comparing with each.
constexpr std::uint32_t kMaxInline = 4;

}  // namespace

NetworkSet::NetworkSet(std::span<const Network> networks) {
  for (const Network& network : networks) networks_.emplace_back(network.bits(), network.base());
  std::ranges::sort(networks_);
  for (const auto& [bits, base] : networks_) {
    if (lengths_.empty() || lengths_.back() != bits) lengths_.push_back(bits);
  }
}

bool NetworkSet::Contains(const Address& address) const noexcept {
  const int shortest = address.is_v4() ? Network::kV4Bits : 0;
  return std::ranges::any_of(lengths_, [&](int bits) {
    return bits >= shortest &&
           std::ranges::binary_search(networks_, std::pair(bits, address.Masked(bits)));
  });
}

/// Reads what Write() wrote, from front to back.
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

/// Layout of a record: the number of methods, with the bit kNested if `any` or `none` follow; if
/// kNested, the size of the spec's own conditions, so that they can be skipped; the own conditions;
/// if kNested, the specs of `any` and `none`.
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
    Write(static_cast<std::size_t>(network.bits()));
    Write(network.base().bytes());
  }
}

/// Writes each spec with its size in front, so that a spec whose result does not matter is skipped.
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
    if (bits >= shortest && request.client.Masked(bits).bytes() == base) return true;
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

/// Returns true if a nested spec holds completely, including its hosts and paths.
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

}  // namespace tidegate
