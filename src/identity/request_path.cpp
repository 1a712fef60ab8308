// SPDX-License-Identifier: Apache-2.0
#include "identity/request_path.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "base/utf8.hpp"

namespace tidegate {
namespace {

/// Properties of a byte that may make the forms of a path differ.
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

/// Returns true if all forms of `path` are `path` itself: it has plain characters only, no empty
/// segment, and no dot at either end of a segment.
bool IsPlain(std::string_view path, bool ignore_case) noexcept {
  unsigned seen = 0;
  unsigned last = 0;
  bool edge = false;  // True: the path contains `//`, `/.` or `./`.
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

/// A decoded segment as lenient servers read it, with and without the parts that they remove.
struct SegmentReading {
  explicit SegmentReading(std::string_view decoded) noexcept
      : has_parameters(decoded.contains(';')), is_only_parameters(decoded.starts_with(';')) {
    const std::string_view name = TrimSpaces(decoded.substr(0, decoded.find(';')), Controls::kTrim);
    is_blank = name.empty() && !decoded.empty();
    is_dots = name == "." || name == "..";
    is_plain_dots = is_dots && name.size() == decoded.size();
  }
  bool has_parameters;
  bool is_only_parameters;
  bool is_blank = false;       ///< The segment is white space only.
  bool is_dots = false;        ///< The segment is `.` or `..`.
  bool is_plain_dots = false;  ///< The segment is `.` or `..`, without parameters or white space.
};

/// The ambiguities of a path. They are searched in the path as sent, because its normal form may
/// have lost the segment that matters: `/a%2Fb/../c` is `/c` to one server and `/a/c` to another.
struct Ambiguity {
  std::optional<PathError> error;
  bool has_encoded_separator = false;
  bool dots = false;     ///< There is a dot segment.
  bool goes_up = false;  ///< There is a `..` segment.
};
Ambiguity FindAmbiguity(std::string_view path, std::pmr::memory_resource& memory) {
  Ambiguity found;
  char* const decoded = static_cast<char*>(memory.allocate(path.size(), 1));
  std::size_t size = 0;  // The size of the decoded segment.
  bool parameters = false;
  bool parameters_here = false;  // A `;` occurred since the last plain slash.
  bool separators_here = false;  // An encoded separator occurred since the last plain slash.
  while (!path.empty()) {
    const auto [c, encoded] = TakeDecoded(path);
    const bool separator = c == '/' || c == '\\';
    if (c == '/' && !encoded) {
      parameters_here = separators_here = false;
    } else {
      parameters_here = parameters_here || c == ';';
      separators_here = separators_here || separator;
      found.has_encoded_separator = found.has_encoded_separator || separator;
      if (parameters_here && separators_here) found.error = PathError::kAmbiguousParameters;
    }
    if (!separator) decoded[size++] = c;
    if (!separator && !path.empty()) continue;
    const SegmentReading segment({decoded, size});
    if (segment.is_blank) found.error = PathError::kBlankSegment;
    if (segment.is_only_parameters) found.error = PathError::kAmbiguousParameters;
    if (segment.is_dots && !segment.is_plain_dots) found.error = PathError::kAmbiguousDots;
    parameters = parameters || segment.has_parameters;
    found.dots = found.dots || segment.is_dots;
    found.goes_up = found.goes_up || (segment.is_plain_dots && size == 2);
    size = 0;
  }
  // Some servers remove the whole rest of a path from its first `;` on.
  if (found.dots && (found.has_encoded_separator || parameters))
    found.error = PathError::kAmbiguousDots;
  return found;
}

/// Returns true for reserved characters that are decoded. `;` is one of them: `%3B` and `;` are the
/// same parameter to a server that decodes first.
bool IsReserved(char c) noexcept { return std::string_view(":@!$&'()*+,;=").contains(c); }

/// Writes a path segment by segment, merging empty segments.
class SegmentWriter {
 public:
  explicit SegmentWriter(char* out) noexcept : begin_(out), end_(out) {}

  /// Begins the next segment. If the current segment is empty, it is dropped.
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
    // `segment` is a part of the current segment; it may begin later than that.
    std::ranges::copy(segment, segment_);
    end_ = segment_ + segment.size();
  }
  /// Returns the path without a final slash, unless the path is `/`.
  [[nodiscard]] std::string_view Finish() noexcept {
    if (end_ - begin_ > 1 && end_[-1] == '/') --end_;
    return {begin_, static_cast<std::size_t>(end_ - begin_)};
  }

 private:
  char* begin_;
  char* end_;
  char* segment_ = begin_;
};

/// Decodes into `bytes` the percent-encoded bytes that `segment` begins with, at most a character.
std::string_view DecodedBytes(std::string_view segment, std::array<char, 4>& bytes) noexcept {
  std::size_t size = 0;
  while (size < bytes.size() && segment.starts_with('%')) bytes[size++] = TakeDecoded(segment).c;
  return {bytes.data(), size};
}

/// Returns the size of the white space, always percent-encoded, at one end of a canonical segment.
std::size_t EncodedSpaceAtBegin(std::string_view segment) noexcept {
  std::array<char, 4> bytes;
  return 3 * SpaceAtBegin(DecodedBytes(segment, bytes), Controls::kTrim);
}
std::size_t EncodedSpaceAtEnd(std::string_view segment) noexcept {
  std::array<char, 4> bytes;
  std::size_t begin = segment.size();
  while (begin >= 3 && segment.size() - begin < 12 && segment[begin - 3] == '%') begin -= 3;
  return 3 * SpaceAtEnd(DecodedBytes(segment.substr(begin), bytes), Controls::kTrim);
}

/// Removes white space at both ends of a segment, and dots at its end.
std::string_view TrimmedSegment(std::string_view segment) noexcept {
  while (const std::size_t size = EncodedSpaceAtBegin(segment)) segment.remove_prefix(size);
  while (true) {
    const std::size_t size = segment.ends_with('.') ? 1 : EncodedSpaceAtEnd(segment);
    if (size == 0) return segment;
    segment.remove_suffix(size);
  }
}

/// Returns a segment of a canonical path as lenient servers read it. Trimming never makes it empty.
std::string_view Lenient(std::string_view segment) noexcept {
  segment = segment.substr(0, segment.find(';'));
  const std::string_view trimmed = TrimmedSegment(segment);
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
  // White space or dots after the last slash are removed together with the slash.
  for (std::size_t slash = 0; lenient.size() > 1;) {
    slash = lenient.rfind('/');
    if (!TrimmedSegment(lenient.substr(slash + 1)).empty()) break;
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
      writer.Put(ignore_case ? Lower(c) : c);
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
  const Ambiguity ambiguity = FindAmbiguity(path, memory);
  if (ambiguity.error) return std::unexpected(*ambiguity.error);
  const bool as_sent = options.forwarding == Forwarding::kAsSent;
  if (ambiguity.goes_up && as_sent) return std::unexpected(PathError::kAmbiguousDots);
  const bool keeps_slashes = as_sent || options.forwarded_slashes == Slashes::kKeep;
  if (keeps_slashes && path.starts_with("//")) return std::unexpected(PathError::kTwoSlashes);
  if (ambiguity.has_encoded_separator && options.encoded_slashes == EncodedSlashes::kReject) {
    return std::unexpected(PathError::kEncodedSeparator);
  }
  const std::string_view canonical = CanonicalPath(*forwarded, options.ignore_case, memory);
  return RequestPath{.forwarded = *forwarded,
                     .canonical = canonical,
                     .lenient = LenientPath(canonical, memory),
                     .has_encoded_separator = ambiguity.has_encoded_separator,
                     .differs_from_upstream =
                         (as_sent && ambiguity.dots) || (keeps_slashes && path.contains("//"))};
}

}  // namespace tidegate
