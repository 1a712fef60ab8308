// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// The values that the placeholders of a body can have.
struct BodyValues {
  std::string_view rule = {};  ///< Empty: the client may not know the rule.
  std::optional<std::int64_t> limit = {};
  std::optional<std::int64_t> remaining = {};
  std::optional<std::int64_t> retry_after = {};  ///< Seconds, as in Retry-After.
  std::string_view request_id = {};
  std::string_view link = {};
  int status = 0;
  std::string_view title = {};
  std::string_view method = {};
  std::string_view path = {};
};

/// The body of a response, with placeholders such as `{retry_after}`.
///
/// Values are escaped for the media type. In values that a client chose (`path`, `method`,
/// `request_id`), all but letters, digits and `-._~/:+=,@%` is percent-encoded besides, so that
/// they cannot end a JSON string, add markup or end a string of a script. A number that is unknown
/// is `null` in JSON and `unknown` elsewhere. Immutable and thread-safe.
class BodyTemplate {
 public:
  /// How values are written, by media type.
  enum class Escaping : std::uint8_t {
    kNone,    ///< A type without known escaping: the body must not have placeholders.
    kText,    ///< Plain text.
    kJson,    ///< The inside of a JSON string.
    kMarkup,  ///< HTML or XML: all but letters, digits and `-._~/` as character references.
  };
  /// Returns how values are escaped in `media_type`, which may have parameters.
  [[nodiscard]] static Escaping EscapingOf(std::string_view media_type) noexcept;

  /// Parses `text`. The error says what is wrong: an unknown placeholder, one in a body of a type
  /// without escaping, or a body that is not valid JSON once its placeholders are replaced.
  [[nodiscard]] static std::expected<BodyTemplate, std::string> Parse(std::string text,
                                                                      Escaping escaping);

  /// Writes the body to `out`, which takes texts by `<<`.
  template <class Out>
  void Write(Out& out, const BodyValues& values) const {
    std::size_t at = 0;
    for (const Placeholder& placeholder : placeholders_) {
      out << std::string_view(text_).substr(at, placeholder.begin - at);
      std::string value;
      Append(value, placeholder.field, values);
      out << std::string_view(value);
      at = placeholder.end;
    }
    out << std::string_view(text_).substr(at);
  }

  /// The names of all placeholders, in the order of Field.
  static constexpr std::array<std::string_view, 10> kNames = {
      "rule", "limit",  "remaining", "retry_after", "request_id",
      "link", "status", "title",     "method",      "path"};

  friend bool operator==(const BodyTemplate&, const BodyTemplate&) = default;

 private:
  enum class Field : std::uint8_t {
    kRule,
    kLimit,
    kRemaining,
    kRetryAfter,
    kRequestId,
    kLink,
    kStatus,
    kTitle,
    kMethod,
    kPath,
  };
  /// A part of `text_` that a value replaces.
  struct Placeholder {
    std::size_t begin = 0;
    std::size_t end = 0;
    Field field = Field::kRule;
    friend bool operator==(const Placeholder&, const Placeholder&) = default;
  };

  void Append(std::string& out, Field field, const BodyValues& values) const;
  void AppendNumber(std::string& out, std::optional<std::int64_t> number) const;
  void AppendText(std::string& out, std::string_view text) const;
  /// Appends a value that a client chose.
  void AppendClientText(std::string& out, std::string_view text) const;

  std::string text_;
  Escaping escaping_ = Escaping::kNone;
  std::vector<Placeholder> placeholders_;
};

}  // namespace tidegate
