// SPDX-License-Identifier: Apache-2.0
#include "identity/client_address.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/ascii.hpp"

namespace tidegate {
namespace {

using Header = ClientAddressPolicy::Header;

/// The maximum length of a quoted node: longer than any address with brackets, port and escapes.
constexpr std::size_t kMaxNode = 64;

/// Returns true if the quote at `at` opens or closes a string, false if a backslash escapes it.
bool IsRealQuote(std::string_view text, std::size_t at) noexcept {
  std::size_t slashes = 0;
  while (slashes < at && text[at - 1 - slashes] == '\\') ++slashes;
  return slashes % 2 == 0;
}

/// Removes the last `divider` outside of quoted strings from `text`, with the piece to its right,
/// and returns it. Without a divider, `more` is false and the piece is all of `text`.
struct Tail {
  std::string_view piece;
  bool more = false;
};
Tail TakeLast(std::string_view& text, char divider, bool quotes) noexcept {
  bool quoted = false;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (quotes && text[i] == '"' && IsRealQuote(text, i)) {
      quoted = !quoted;
    } else if (text[i] == divider && !quoted) {
      const std::string_view piece = text.substr(i + 1);
      text = text.substr(0, i);
      return {Trim(piece), true};
    }
  }
  return {Trim(text), false};
}

/// Parses a token or a quoted string (RFC 9110) as an address. The RFC requires quotes for a node
/// with a colon or brackets, but some proxies omit them.
std::optional<Address> ParseNode(std::string_view value) noexcept {
  if (!value.starts_with('"')) return Address::ParseWithPort(value);
  if (value.size() < 2 || !value.ends_with('"')) return std::nullopt;
  value = value.substr(1, value.size() - 2);
  if (value.size() > kMaxNode) return std::nullopt;
  std::array<char, kMaxNode> plain;
  std::size_t size = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && ++i == value.size()) return std::nullopt;
    plain[size++] = value[i];
  }
  return Address::ParseWithPort({plain.data(), size});
}

/// Parses the only `for` of an element such as `for="[2001:db8::1]:80";proto=https`.
std::optional<Address> ParseForwarded(std::string_view element) noexcept {
  std::optional<Address> found;
  for (bool more = true; more;) {
    const Tail pair = TakeLast(element, ';', true);
    more = pair.more;
    const std::size_t equals = pair.piece.find('=');
    if (equals == std::string_view::npos) continue;
    if (!EqualsIgnoreCase(Trim(pair.piece.substr(0, equals)), "for")) continue;
    if (found) return std::nullopt;  // RFC 7239 allows each parameter once: neither can be trusted.
    found = ParseNode(Trim(pair.piece.substr(equals + 1)));
    if (!found) return std::nullopt;
  }
  return found;
}

/// Iterates over the entries of all lines of the header, from right to left.
class Entries {
 public:
  Entries(std::span<const HeaderField> headers, Header header) noexcept
      : headers_(headers),
        header_(header),
        name_(header == Header::kForwarded ? "forwarded" : "x-forwarded-for") {}

  /// Returns false if there is no other entry. `address` is empty if the entry cannot be read.
  /// Skips empty entries (RFC 9110, 5.6.1.2): a final comma must not hide the address before it.
  bool Next(std::optional<Address>& address) noexcept {
    while (in_line_ || PreviousLine()) {
      const Tail entry = TakeLast(line_, ',', header_ == Header::kForwarded);
      in_line_ = entry.more;
      if (entry.piece.empty()) continue;
      address = header_ == Header::kForwarded ? ParseForwarded(entry.piece)
                                              : Address::ParseWithPort(entry.piece);
      return true;
    }
    return false;
  }

 private:
  bool PreviousLine() noexcept {
    while (!headers_.empty()) {
      const HeaderField& field = headers_.back();
      headers_ = headers_.first(headers_.size() - 1);
      if (!EqualsIgnoreCase(field.name, name_)) continue;
      line_ = field.value;
      return true;
    }
    return false;
  }

  std::span<const HeaderField> headers_;
  Header header_;
  std::string_view name_;
  std::string_view line_;
  bool in_line_ = false;
};

Address WalkTrusted(const ClientAddressPolicy& policy, const Address& peer,
                    Entries& entries) noexcept {
  Address last = peer;
  for (std::optional<Address> entry; entries.Next(entry);) {
    if (!entry) return last;
    last = *entry;
    if (!policy.Trusts(last)) return last;
  }
  return last;
}

Address CountHops(int hops, const Address& peer, Entries& entries) noexcept {
  Address last = peer;
  for (std::optional<Address> entry; hops > 0; --hops) {
    if (!entries.Next(entry)) return peer;
    if (entry) last = *entry;
  }
  return last;
}

}  // namespace

bool ClientAddressPolicy::Trusts(const Address& peer) const noexcept {
  return std::ranges::any_of(trusted_proxies,
                             [&](const Network& network) { return network.Contains(peer); });
}

Address ClientAddress(const ClientAddressPolicy& policy, const Address& peer,
                      std::span<const HeaderField> headers) noexcept {
  if (!policy.Trusts(peer)) return peer;
  Entries entries(headers, policy.header);
  return policy.hops > 0 ? CountHops(policy.hops, peer, entries)
                         : WalkTrusted(policy, peer, entries);
}

}  // namespace tidegate
