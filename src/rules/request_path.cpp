// SPDX-License-Identifier: Apache-2.0
#include "rules/request_path.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "rules/ascii.hpp"
#include "rules/printable.hpp"

namespace tidegate {
namespace {

/// What a byte of a path may require beyond forwarding it as it is.
enum Trait : std::uint8_t {
  kSlash = 1,
  kDot = 2,
  kUpper = 4,
  kSpecial = 8,  ///< `%`, `;` and every byte that a path in normal form does not contain.
};

constexpr std::array<std::uint8_t, 256> kTraits = [] {
  std::array<std::uint8_t, 256> traits{};
  for (std::uint8_t& each : traits) each = kSpecial;
  for (const char c : std::string_view("0123456789abcdefghijklmnopqrstuvwxyz-_~:@!$&'()*+,=")) {
    traits[static_cast<unsigned char>(c)] = 0;
  }
  for (unsigned c = 'A'; c <= 'Z'; ++c) traits[c] = kUpper;
  traits['/'] = kSlash;
  traits['.'] = kDot;
  return traits;
}();

/// Returns true if all forms of `path` are `path` itself: plain characters, no empty segment and no
/// dot at either end of a segment.
bool IsPlain(std::string_view path, bool ignore_case) noexcept {
  unsigned seen = 0;
  unsigned last = 0;
  bool edge = false;  // `//`, `/.` or `./`.
  for (const char c : path) {
    const unsigned trait = kTraits[static_cast<unsigned char>(c)];
    seen |= trait;
    edge |= ((last | trait) & kSlash) != 0 && (last & (kSlash | kDot)) != 0 &&
            (trait & (kSlash | kDot)) != 0;
    last = trait;
  }
  if ((seen & kSpecial) != 0 || edge || (ignore_case && (seen & kUpper) != 0)) return false;
  return path.size() <= 1 || (last & (kSlash | kDot)) == 0;
}

/// Takes one character off the front of `text` and returns it decoded.
struct Decoded {
  unsigned char c;
  bool encoded;
};
Decoded TakeDecoded(std::string_view& text) noexcept {
  if (text[0] == '%' && text.size() >= 3) {
    const int high = HexDigit(text[1]);
    const int low = HexDigit(text[2]);
    if (high >= 0 && low >= 0) {
      text.remove_prefix(3);
      return {static_cast<unsigned char>(high * 16 + low), true};
    }
  }
  const auto c = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  return {c, false};
}

/// White space to some server: ASCII white space and controls, and the two spaces of Latin-1.
constexpr bool IsSpace(unsigned char c) noexcept {
  return c <= ' ' || c == 0x7F || c == 0xA0 || c == 0x85;
}

/// What a lenient server sees in one segment.
class SegmentShape {
 public:
  void Add(unsigned char c) noexcept {
    if (c == ';') parameters_ = true;
    if (parameters_) return;
    empty_ = false;
    if (c == '.') {
      ++dots_;
    } else if (IsSpace(c)) {
      spaces_ = true;
    } else {
      other_ = true;
    }
  }
  [[nodiscard]] bool is_dots() const noexcept { return !other_ && (dots_ == 1 || dots_ == 2); }
  [[nodiscard]] bool is_plain_dots() const noexcept {
    return is_dots() && !spaces_ && !parameters_;
  }
  [[nodiscard]] bool is_only_parameters() const noexcept { return empty_ && parameters_; }

 private:
  int dots_ = 0;
  bool empty_ = true;
  bool other_ = false;
  bool spaces_ = false;
  bool parameters_ = false;
};

/// What makes a path ambiguous, found in the path as sent: its normal form may have lost the
/// segment that matters. `/a%2Fb/../c` is `/c` to one server and `/a/c` to another.
struct Ambiguity {
  std::optional<PathError> error;
  bool has_encoded_separator = false;
};
Ambiguity FindAmbiguity(std::string_view path) noexcept {
  Ambiguity found;
  bool dots = false;
  bool parameters = false;  // Since the last plain slash.
  bool separators = false;  // Encoded ones, since the last plain slash.
  SegmentShape segment;
  while (!path.empty()) {
    const auto [c, encoded] = TakeDecoded(path);
    const bool separator = c == '/' || c == '\\';
    if (c == '/' && !encoded) {
      parameters = separators = false;
    } else {
      parameters = parameters || c == ';';
      separators = separators || separator;
      found.has_encoded_separator = found.has_encoded_separator || separator;
      if (parameters && separators) found.error = PathError::kAmbiguousParameters;
    }
    if (!separator) segment.Add(c);
    if (!separator && !path.empty()) continue;
    if (segment.is_only_parameters()) found.error = PathError::kAmbiguousParameters;
    if (segment.is_dots() && !segment.is_plain_dots()) found.error = PathError::kAmbiguousDots;
    dots = dots || segment.is_dots();
    segment = {};
  }
  if (dots && found.has_encoded_separator) found.error = PathError::kAmbiguousDots;
  return found;
}

/// `;` among them: `%3B` and `;` are the same parameter to a server that decodes first.
bool IsReserved(unsigned char c) noexcept {
  return c < 0x80 &&
         std::string_view(":@!$&'()*+,;=").find(static_cast<char>(c)) != std::string_view::npos;
}

/// Appends a segment, merging empty segments.
class SegmentWriter {
 public:
  explicit SegmentWriter(char* out) noexcept : begin_(out), end_(out) {}

  /// Begins the next segment; one that stayed empty is dropped.
  void Slash() noexcept {
    if (end_ == begin_ || end_[-1] != '/') *end_++ = '/';
    segment_ = end_;
  }
  void Put(char c) noexcept { *end_++ = c; }
  void Put(std::string_view text) noexcept { end_ = std::ranges::copy(text, end_).out; }

  [[nodiscard]] std::string_view segment() const noexcept {
    return {segment_, static_cast<std::size_t>(end_ - segment_)};
  }
  void Truncate(std::string_view segment) noexcept {
    // `segment` lies in the current one, perhaps behind its begin.
    std::copy(segment.begin(), segment.end(), segment_);
    end_ = segment_ + segment.size();
  }
  /// Returns the text without a final slash, except that of the root.
  [[nodiscard]] std::string_view Finish() noexcept {
    if (end_ - begin_ > 1 && end_[-1] == '/') --end_;
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  char* begin_;
  char* end_;
  char* segment_ = begin_;
};

/// Removes white space, percent-encoded in a path, from the front.
bool TakeSpace(std::string_view& text) noexcept {
  for (const std::string_view space : {"%C2%A0", "%C2%85", "%c2%a0", "%c2%85"}) {
    if (text.starts_with(space)) return text.remove_prefix(space.size()), true;
  }
  std::string_view rest = text;
  if (rest.empty()) return false;
  const Decoded first = TakeDecoded(rest);
  if (!first.encoded || !IsSpace(first.c)) return false;
  text = rest;
  return true;
}

/// Removes white space or a dot from the back.
bool TakeSpaceOrDotAtEnd(std::string_view& text) noexcept {
  if (text.ends_with('.')) return text.remove_suffix(1), true;
  for (const std::size_t size : {std::size_t{6}, std::size_t{3}}) {
    if (text.size() < size) continue;
    std::string_view end = text.substr(text.size() - size);
    if (TakeSpace(end) && end.empty()) return text.remove_suffix(size), true;
  }
  return false;
}

std::string_view Trimmed(std::string_view segment) noexcept {
  while (TakeSpace(segment)) {
  }
  while (TakeSpaceOrDotAtEnd(segment)) {
  }
  return segment;
}

/// Returns a segment of a canonical path as lenient servers read it. Never makes it empty.
std::string_view Lenient(std::string_view segment) noexcept {
  segment = segment.substr(0, segment.find(';'));
  const std::string_view trimmed = Trimmed(segment);
  return trimmed.empty() ? segment : trimmed;
}

std::string_view LenientPath(std::string_view canonical, std::pmr::memory_resource& memory) {
  SegmentWriter writer(static_cast<char*>(memory.allocate(canonical.size() + 1, 1)));
  std::string_view rest = canonical;
  while (!rest.empty()) {
    const bool plain = rest.front() == '/';
    const bool encoded =
        rest.size() >= 3 && rest[0] == '%' &&
        ((rest[1] == '2' && Lower(rest[2]) == 'f') || (rest[1] == '5' && Lower(rest[2]) == 'c'));
    if (plain || encoded) {
      writer.Truncate(Lenient(writer.segment()));
      writer.Slash();
      rest.remove_prefix(plain ? 1 : 3);
    } else {
      writer.Put(rest.front());
      rest.remove_prefix(1);
    }
  }
  writer.Truncate(Lenient(writer.segment()));
  std::string_view lenient = writer.Finish();
  // White space or dots behind the last slash are removed together with the slash.
  for (std::size_t slash = 0; lenient.size() > 1;) {
    slash = lenient.rfind('/');
    if (!Trimmed(lenient.substr(slash + 1)).empty()) break;
    lenient = lenient.substr(0, std::max<std::size_t>(slash, 1));
  }
  return lenient == canonical ? canonical : lenient;
}

}  // namespace

std::string InvalidPath(std::string_view path, PathError error) {
  constexpr std::size_t kMost = 100;
  return "invalid path `" + Printable(path.substr(0, kMost)) +
         (path.size() > kMost ? "...`: " : "`: ") + std::string(Message(error));
}

std::string_view CanonicalPath(std::string_view normal, bool ignore_case,
                               std::pmr::memory_resource& memory) {
  SegmentWriter writer(static_cast<char*>(memory.allocate(normal.size() + 1, 1)));
  std::string_view rest = normal;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const auto [c, encoded] = TakeDecoded(rest);
    if (c == '/' && !encoded) {
      writer.Slash();
    } else if (!encoded || IsReserved(c)) {
      writer.Put(ignore_case ? Lower(static_cast<char>(c)) : static_cast<char>(c));
    } else {
      writer.Put(before.substr(0, 3));
    }
  }
  const std::string_view canonical = writer.Finish();
  return canonical == normal ? normal : canonical;
}

std::expected<RequestPath, PathError> ReadRequestPath(std::string_view path,
                                                      const PathOptions& options,
                                                      std::pmr::memory_resource& memory) {
  if (path.starts_with('/') && IsPlain(path, options.ignore_case))
    return RequestPath{path, path, path};
  const auto forwarded = NormalizePath(path, options.forwarded_slashes, memory);
  if (!forwarded) return std::unexpected(forwarded.error());
  const Ambiguity ambiguity = FindAmbiguity(path);
  if (ambiguity.error) return std::unexpected(*ambiguity.error);
  if (ambiguity.has_encoded_separator && options.encoded_slashes == EncodedSlashes::kReject) {
    return std::unexpected(PathError::kEncodedSeparator);
  }
  const std::string_view canonical = CanonicalPath(*forwarded, options.ignore_case, memory);
  return RequestPath{.forwarded = *forwarded,
                     .canonical = canonical,
                     .lenient = LenientPath(canonical, memory),
                     .has_encoded_separator = ambiguity.has_encoded_separator};
}

}  // namespace tidegate
