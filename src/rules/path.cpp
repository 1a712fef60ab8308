// SPDX-License-Identifier: Apache-2.0
#include "rules/path.hpp"

#include <algorithm>
#include <array>

#include "rules/address.hpp"
#include "rules/ascii.hpp"

namespace tidegate {
namespace {

enum class Kind : std::uint8_t { kBad, kUnreserved, kOther };

/// What RFC 3986 lets stand in a path: `/`, `%` and the characters of a segment.
constexpr std::array<Kind, 256> kPathBytes = [] {
  std::array<Kind, 256> kinds{};
  for (unsigned c = 0; c < 128; ++c) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      kinds[c] = Kind::kUnreserved;
    }
  }
  for (const char c : std::string_view("-._~"))
    kinds[static_cast<unsigned char>(c)] = Kind::kUnreserved;
  for (const char c : std::string_view("/%:@!$&'()*+,;=")) {
    kinds[static_cast<unsigned char>(c)] = Kind::kOther;
  }
  return kinds;
}();

Kind KindOf(char c) noexcept { return kPathBytes[static_cast<unsigned char>(c)]; }

/// Whether nothing in it can need a change: no percent sign, no segment that begins with a dot,
/// no double slash. So for nearly all paths one pass is all.
enum class Look : std::uint8_t { kBad, kNormal, kUnsure };
Look LookAt(std::string_view path) noexcept {
  if (path.empty() || path[0] != '/') return Look::kBad;
  Look look = Look::kNormal;
  char last = 'x';
  for (const char c : path) {
    if (KindOf(c) == Kind::kBad) return Look::kBad;
    if (c == '%' || (last == '/' && (c == '.' || c == '/'))) look = Look::kUnsure;
    last = c;
  }
  return look;
}

/// Writes a path segment by segment; never more than it reads.
class PathWriter {
 public:
  PathWriter(char* out, Slashes slashes) noexcept : begin_(out), end_(out), slashes_(slashes) {}

  /// One segment, without its slash, and whether a slash follows. False: refuse the path.
  bool Segment(std::string_view segment, bool last) noexcept {
    char* const start = end_;
    *end_++ = '/';
    if (!Decode(segment)) return false;
    const std::string_view decoded(start + 1, static_cast<std::size_t>(end_ - start) - 1);
    if (decoded == "." || decoded == "..") {
      const bool up = decoded.size() == 2;
      end_ = start;
      if (up && !Pop()) return false;
      if (last) *end_++ = '/';  // "/a/." and "/a/b/.." are "/a/".
    } else if (decoded.empty() && !last && slashes_ == Slashes::kMerge) {
      end_ = start;
    }
    return true;
  }

  [[nodiscard]] std::string_view text() const noexcept {
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  bool Decode(std::string_view segment) noexcept {
    for (std::size_t i = 0; i < segment.size(); ++i) {
      if (segment[i] != '%') {
        *end_++ = segment[i];
        continue;
      }
      if (segment.size() - i < 3) return false;
      const int high = HexDigit(segment[i + 1]);
      const int low = HexDigit(segment[i + 2]);
      if (high < 0 || low < 0 || high + low == 0) return false;
      const char c = static_cast<char>(high * 16 + low);
      if (KindOf(c) == Kind::kUnreserved) {
        *end_++ = c;
      } else {
        constexpr std::string_view kHex = "0123456789ABCDEF";
        *end_++ = '%';
        *end_++ = kHex[static_cast<std::size_t>(high)];
        *end_++ = kHex[static_cast<std::size_t>(low)];
      }
      i += 2;
    }
    return true;
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

/// What lenient servers take for a segment, one character after the other.
class LenientSegment {
 public:
  void Add(char c) noexcept {
    if (c == ';') parameters_ = true;
    if (!parameters_) dots_ = c == '.' && dots_ < kNoDots ? dots_ + 1 : kNoDots;
  }
  [[nodiscard]] bool is_dots() const noexcept { return dots_ == 1 || dots_ == 2; }
  [[nodiscard]] bool has_parameters() const noexcept { return parameters_; }

 private:
  static constexpr int kNoDots = 3;
  int dots_ = 0;
  bool parameters_ = false;
};

/// The character that `text` begins with; takes it off. A broken percent-encoding is a plain `%`.
struct Decoded {
  char c;
  bool encoded;
};
Decoded TakeDecoded(std::string_view& text) noexcept {
  if (text[0] == '%' && text.size() >= 3) {
    const int high = HexDigit(text[1]);
    const int low = HexDigit(text[2]);
    if (high >= 0 && low >= 0) {
      text.remove_prefix(3);
      return {static_cast<char>(high * 16 + low), true};
    }
  }
  const char c = text[0];
  text.remove_prefix(1);
  return {c, false};
}

std::string_view CopyLower(std::string_view text, std::pmr::memory_resource& memory) {
  char* const out = static_cast<char*>(memory.allocate(text.size(), 1));
  std::transform(text.begin(), text.end(), out, Lower);
  return {out, text.size()};
}

bool IsPort(std::string_view port) noexcept {
  unsigned number = 0;
  for (const char c : port) {
    if (c < '0' || c > '9') return false;
    number = std::min(number * 10 + static_cast<unsigned>(c - '0'), 65536u);
  }
  return number <= 65535;  // The grammar has an empty port too.
}

std::optional<std::string_view> NormalizeV6(std::string_view host,
                                            std::pmr::memory_resource& memory) {
  const std::size_t close = host.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = host.substr(1, close - 1);
  const std::string_view port = host.substr(close + 1);
  if (!port.empty() && (port[0] != ':' || !IsPort(port.substr(1)))) return std::nullopt;
  const auto address = Address::Parse(inside);
  if (!address || inside.find(':') == std::string_view::npos) return std::nullopt;
  std::array<char, Address::kMaxText + 2> text;
  text[0] = '[';
  const std::size_t size = address->Write(text.data() + 1);
  text[size + 1] = ']';
  // [::ffff:1.2.3.4] is 1.2.3.4.
  const std::string_view normal = address->is_v4() ? std::string_view(text.data() + 1, size)
                                                   : std::string_view(text.data(), size + 2);
  if (host.substr(0, normal.size()) == normal) return host.substr(0, normal.size());
  return CopyLower(normal, memory);
}

/// Letters, digits, `-` and `_` in labels that are not empty; DNS ends at 253 characters.
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

}  // namespace

std::optional<std::string_view> NormalizePath(std::string_view path, Slashes slashes,
                                              std::pmr::memory_resource& memory) {
  const Look look = LookAt(path);
  if (look == Look::kBad) return std::nullopt;
  if (look == Look::kNormal) return path;
  PathWriter writer(static_cast<char*>(memory.allocate(path.size(), 1)), slashes);
  for (std::string_view rest = path;;) {
    rest.remove_prefix(1);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const bool last = slash == rest.size();
    if (!writer.Segment(rest.substr(0, slash), last)) return std::nullopt;
    if (last) break;
    rest.remove_prefix(slash);
  }
  return writer.text() == path ? path : writer.text();
}

bool MayClimbElsewhere(std::string_view path) noexcept {
  // Nearly all paths end here.
  if (path.find_first_of("%;\\") == std::string_view::npos) return false;
  bool dot_segment = false;
  bool odd_separator = false;
  LenientSegment segment;
  while (!path.empty()) {
    const auto [c, encoded] = TakeDecoded(path);
    const bool separator = c == '/' || c == '\\';
    if (separator && (encoded || c == '\\')) odd_separator = true;
    if (!separator) segment.Add(c);
    if (!separator && !path.empty()) continue;
    if (segment.is_dots() && segment.has_parameters()) return true;
    dot_segment = dot_segment || segment.is_dots();
    segment = {};
  }
  return dot_segment && odd_separator;
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
  if (std::none_of(host.begin(), host.end(), IsUpper)) return host;
  return CopyLower(host, memory);
}

}  // namespace tidegate
