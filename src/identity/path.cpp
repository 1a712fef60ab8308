// SPDX-License-Identifier: Apache-2.0
#include "identity/path.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "identity/address.hpp"

namespace tidegate {
namespace {

enum class Kind : std::uint8_t {
  kBad,
  kUnreserved,
  kOther,   ///< Allowed in a path as it is: `/`, `%` and the reserved characters of a segment.
  kEncode,  ///< Not allowed by RFC 3986, but sent by browsers and other clients.
};

constexpr std::array<Kind, 256> kPathBytes = [] {
  std::array<Kind, 256> kinds{};
  for (unsigned c = '!'; c < 256; ++c) kinds[c] = c == 0x7F ? Kind::kBad : Kind::kEncode;
  for (unsigned c = 0; c < 128; ++c) {
    const char ascii = static_cast<char>(c);
    if (IsAlphanumeric(ascii) || std::string_view("-._~").contains(ascii)) {
      kinds[c] = Kind::kUnreserved;
    }
  }
  for (const char c : std::string_view("/%:@!$&'()*+,;=")) {
    kinds[static_cast<unsigned char>(c)] = Kind::kOther;
  }
  for (const char c : std::string_view("?#")) kinds[static_cast<unsigned char>(c)] = Kind::kBad;
  return kinds;
}();

Kind KindOf(char c) noexcept { return kPathBytes[static_cast<unsigned char>(c)]; }

/// The result of one pass over a path. Nearly all paths are in normal form and need no second pass.
struct Scan {
  bool bad = false;
  bool normal = true;         ///< It has no percent sign, dot segment, double slash or byte to
                              ///< encode.
  std::size_t to_encode = 0;  ///< The number of bytes of Kind::kEncode.
};
Scan ScanPath(std::string_view path) noexcept {
  Scan scan;
  char last = 'x';
  for (const char c : path) {
    const Kind kind = KindOf(c);
    if (kind == Kind::kBad) scan.bad = true;
    if (kind == Kind::kEncode) ++scan.to_encode;
    if (c == '%' || (last == '/' && (c == '.' || c == '/'))) scan.normal = false;
    last = c;
  }
  if (scan.to_encode > 0) scan.normal = false;
  return scan;
}

/// Writes the normal form of a path segment by segment.
class PathWriter {
 public:
  /// REQUIRES: `out` has room for the path and two more bytes for each byte to encode.
  PathWriter(char* out, Slashes slashes) noexcept : begin_(out), end_(out), slashes_(slashes) {}

  /// Writes one segment with the slash before it. `last` is true if no slash follows.
  [[nodiscard]] std::expected<void, PathError> Segment(std::string_view segment,
                                                       bool last) noexcept {
    char* const start = end_;
    *end_++ = '/';
    if (!Decode(segment)) return std::unexpected(PathError::kBadEncoding);
    const std::string_view decoded(start + 1, static_cast<std::size_t>(end_ - start) - 1);
    if (decoded == "." || decoded == "..") {
      const bool up = decoded.size() == 2;
      end_ = start;
      if (up && !Pop()) return std::unexpected(PathError::kAboveRoot);
      if (last) *end_++ = '/';  // "/a/." and "/a/b/.." become "/a/".
    } else if (decoded.empty() && !last && slashes_ == Slashes::kMerge) {
      end_ = start;
    }
    return {};
  }

  [[nodiscard]] std::string_view text() const noexcept {
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  bool Decode(std::string_view segment) noexcept {
    for (std::size_t i = 0; i < segment.size(); ++i) {
      char c = segment[i];
      if (c != '%') {
        Write(c, KindOf(c) == Kind::kEncode);
        continue;
      }
      if (segment.size() - i < 3) return false;
      const int high = HexDigit(segment[i + 1]);
      const int low = HexDigit(segment[i + 2]);
      if (high < 0 || low < 0 || high + low == 0) return false;
      c = static_cast<char>(high * 16 + low);
      Write(c, KindOf(c) != Kind::kUnreserved);
      i += 2;
    }
    return true;
  }

  void Write(char c, bool encoded) noexcept {
    if (encoded) {
      end_ = WritePercentEncoded(end_, c);
    } else {
      *end_++ = c;
    }
  }

  bool Pop() noexcept {
    if (end_ == begin_) return false;
    do --end_;
    while (*end_ != '/');
    return true;
  }

  char* begin_;
  char* end_;
  Slashes slashes_;
};

std::string_view CopyLower(std::string_view text, std::pmr::memory_resource& memory) {
  char* const out = static_cast<char*>(memory.allocate(text.size(), 1));
  std::ranges::transform(text, out, Lower);
  return {out, text.size()};
}

bool IsPort(std::string_view port) noexcept {
  unsigned number = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') return false;
    number = std::min(number * 10 + static_cast<unsigned>(c - '0'), 65536u);
  }
  return number <= 65535;  // The grammar also allows an empty port.
}

std::optional<std::string_view> NormalizeV6(std::string_view host,
                                            std::pmr::memory_resource& memory) {
  const std::size_t close = host.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = host.substr(1, close - 1);
  const std::string_view port = host.substr(close + 1);
  if (!port.empty() && (port[0] != ':' || !IsPort(port.substr(1)))) return std::nullopt;
  const auto address = Address::Parse(inside);
  if (!address || !inside.contains(':')) return std::nullopt;
  std::array<char, Address::kMaxText + 2> text;
  text[0] = '[';
  const std::size_t size = address->Write(text.data() + 1);
  text[size + 1] = ']';
  // The host [::ffff:1.2.3.4] is normalised to 1.2.3.4.
  const std::string_view normal = address->is_v4() ? std::string_view(text.data() + 1, size)
                                                   : std::string_view(text.data(), size + 2);
  if (host.substr(0, normal.size()) == normal) return host.substr(0, normal.size());
  return CopyLower(normal, memory);
}

/// Returns true if `name` consists of letters, digits, `-` and `_` in labels that are not empty.
/// DNS allows at most 253 characters.
bool IsName(std::string_view name) noexcept {
  if (name.empty() || name.size() > 253) return false;
  char last = '.';
  for (const char c : name) {
    const bool fits = c == '.' ? last != '.' : KindOf(c) == Kind::kUnreserved && c != '~';
    if (!fits) return false;
    last = c;
  }
  return last != '.';
}

/// The messages, in the order of PathError.
constexpr std::array<std::string_view, 9> kMessages = {
    "a path must begin with a slash",
    "the path contains a space, a control character, `?` or `#`: percent-encode it",
    "the path contains a malformed percent-encoding, or `%00`",
    "the path leaves the root: it has more `..` segments than segments before them",
    "ambiguous path: servers resolve its dot segments differently; send it without dot "
    "segments",
    "ambiguous path: servers read a segment such as `;x` or `a;x%2Fb` differently; remove "
    "the `;` part or the encoded slash",
    "ambiguous path: a segment consists of white space only, and some servers remove it",
    "ambiguous path: it begins with two slashes, and some servers read the first segment "
    "as a host",
    "ambiguous path: it contains an encoded slash, an encoded backslash or a backslash, "
    "which some servers read as a slash; `encoded_slashes: match` allows it",
};

}  // namespace

std::string_view Message(PathError error) noexcept {
  return kMessages[static_cast<std::size_t>(error)];
}

std::expected<std::string_view, PathError> NormalizePath(std::string_view path, Slashes slashes,
                                                         std::pmr::memory_resource& memory) {
  if (!path.starts_with('/')) return std::unexpected(PathError::kNoSlash);
  const Scan scan = ScanPath(path);
  if (scan.bad) return std::unexpected(PathError::kBadByte);
  if (scan.normal) return path;
  const std::size_t room = path.size() + 2 * scan.to_encode;
  PathWriter writer(static_cast<char*>(memory.allocate(room, 1)), slashes);
  for (std::string_view rest = path;;) {
    rest.remove_prefix(1);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const bool last = slash == rest.size();
    const auto written = writer.Segment(rest.substr(0, slash), last);
    if (!written) return std::unexpected(written.error());
    if (last) break;
    rest.remove_prefix(slash);
  }
  return writer.text() == path ? path : writer.text();
}

std::optional<std::string_view> NormalizeHost(std::string_view host,
                                              std::pmr::memory_resource& memory) {
  if (host.starts_with('[')) return NormalizeV6(host, memory);
  const std::size_t colon = host.find(':');
  if (colon != std::string_view::npos) {
    if (!IsPort(host.substr(colon + 1))) return std::nullopt;
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (!IsName(host)) return std::nullopt;
  if (std::ranges::none_of(host, IsUpper)) return host;
  return CopyLower(host, memory);
}

}  // namespace tidegate
