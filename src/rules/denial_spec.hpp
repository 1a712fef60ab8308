// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  std::string_view rule = {};  ///< Empty: the client must not learn the rule's name.
  std::optional<std::int64_t> limit = {};
  std::optional<std::int64_t> remaining = {};
  std::optional<std::int64_t> retry_after = {};  ///< Seconds, as in Retry-After.
  std::string_view request_id = {};
  std::string_view link = {};
  std::optional<std::int64_t> status = {};
  std::string_view title = {};
  std::string_view method = {};
  std::string_view path = {};
};

/// The body of a response, with placeholders such as `{retry_after}`. Values are escaped for the
/// media type; in those that a client chose (`path`, `method`, `request_id`), all but letters,
/// digits and `-._~/:+=,@%` is percent-encoded before, so that they cannot end a string or add
/// markup. An unknown number is `null` in JSON and `unknown` elsewhere. Immutable and thread-safe.
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

  /// Writes the body to `out`, piece by piece with `operator<<(std::string_view)`.
  template <class Out>
  void Write(Out& out, const BodyValues& values) const {
    std::size_t at = 0;
    for (const Placeholder& placeholder : placeholders_) {
      out << std::string_view(text_).substr(at, placeholder.begin - at);
      std::string value;
      Append(value, placeholder.value, values);
      out << std::string_view(value);
      at = placeholder.end;
    }
    out << std::string_view(text_).substr(at);
  }

  friend bool operator==(const BodyTemplate&, const BodyTemplate&) = default;

 private:
  /// A part of `text_` that a value replaces.
  struct Placeholder {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t value = 0;  ///< The index in the table of placeholders.
    friend bool operator==(const Placeholder&, const Placeholder&) = default;
  };

  void Append(std::string& out, std::size_t value, const BodyValues& values) const;
  void AppendText(std::string& out, std::string_view text) const;

  std::string text_;
  Escaping escaping_ = Escaping::kNone;
  std::vector<Placeholder> placeholders_;
};

/// Changes to the header fields of a message on its way. Names are in lower case. Fields in
/// `remove` are removed before those in `set` are added.
struct HeaderEdits {
  struct Set {
    std::string name = {};
    std::string value = {};
    friend bool operator==(const Set&, const Set&) = default;
  };
  std::vector<Set> set = {};  ///< Each entry replaces all fields with its name.
  std::vector<std::string> remove = {};

  [[nodiscard]] bool empty() const noexcept { return set.empty() && remove.empty(); }
  friend bool operator==(const HeaderEdits&, const HeaderEdits&) = default;
};

/// How a denial looks to clients of the gateway and of proxies that ask /v1/auth.
struct DenialSpec {
  std::optional<int> status = {};         ///< Replaces 429; absent: 429 is sent.
  std::string content_type = {};          ///< The media type of `body`.
  std::optional<BodyTemplate> body = {};  ///< Absent: the problem document is sent.
  std::vector<HeaderEdits::Set> headers = {};
  std::string link = {};  ///< URL of a page about the limit; empty: no link.

  friend bool operator==(const DenialSpec&, const DenialSpec&) = default;
};

/// Returns true if a configuration cannot set the field `name` (in lower case) in a response of
/// Tidegate itself: Tidegate sets it, it describes another body, or caches would keep the response.
[[nodiscard]] bool IsDenialField(std::string_view name) noexcept;

}  // namespace tidegate
