// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http1_parser.hpp"
#include "net/out_buffer.hpp"
#include "rules/gateway_spec.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// What a field is to a proxy.
enum class FieldKind : std::uint8_t {
  kEndToEnd,  ///< Forwarded.
  kFraming,   ///< Content-Length, Transfer-Encoding: written by the gateway.
  kHopByHop,  ///< Belongs to one connection: dropped.
  kUpgrade,   ///< Forwarded if the connection may be upgraded.
  kTe,        ///< Only `trailers` in it is forwarded.
  kTrailer,   ///< Forwarded with a body that can have trailers.
  kHost,
  kExpect,
  /// Says where a request comes from or what it asks for: Forwarded, X-Forwarded-*, X-Real-IP,
  /// X-Original-URL, X-Rewrite-URL and others. Forwarded from trusted peers only.
  kForwarded,
  kXForwardedFor,
  kXForwardedProto,
  kXForwardedHost,
  kRequestId,
  kDate,
};

/// Returns the kind of a field by its name, in any case and with `_` for `-`: servers that turn
/// fields into variables do not see the difference.
[[nodiscard]] FieldKind KindOf(std::string_view name) noexcept;

/// What becomes of each field of a request's head. Rules see the fields that the upstream will see:
/// a key that is counted and then dropped would give its client a fresh quota, while the upstream
/// serves an anonymous request.
class RequestFields {
 public:
  struct Policy {
    bool trusted = false;      ///< The peer may say where requests come from.
    bool underscores = false;  ///< Fields with `_` in their names are forwarded.
    const RuleSet& rules;
  };
  /// Returns false if Connection names too many fields.
  [[nodiscard]] bool Classify(const net::HttpHead& head, const Policy& policy) noexcept;

  /// Returns the kind of field `i`, or kHopByHop if it is dropped for another reason: Connection
  /// names it, its name has a `_`, or the peer is not trusted.
  [[nodiscard]] FieldKind operator[](std::size_t i) const noexcept { return kinds_[i]; }
  /// Returns true if rules see field `i`.
  [[nodiscard]] bool VisibleToRules(std::size_t i, const net::HttpHead& head) const noexcept {
    return kinds_[i] == FieldKind::kEndToEnd || IsVisible(i, head);
  }

 private:
  [[nodiscard]] bool IsVisible(std::size_t i, const net::HttpHead& head) const noexcept;

  std::array<FieldKind, net::HttpHead::kMaxFields> kinds_;
};

/// Writes the end-to-end trailers of a response. Drops fields that the route edits, and those that
/// are believed in a head: a client that merges trailers into the head would believe them.
void WriteResponseTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                           const HeaderEdits& edits);
/// The same for a request. Also drops the fields that rules read and, unless `policy` forwards
/// them, fields with `_` in their names: an upstream that merges trailers into the head would see a
/// key that was not counted.
void WriteRequestTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                          const HeaderEdits& edits, const RequestFields::Policy& policy);
/// Returns true if the route removes or sets the field.
[[nodiscard]] bool Edited(const HeaderEdits& edits, std::string_view name) noexcept;

/// `a` is `b` but for the case of letters.
[[nodiscard]] bool SameName(std::string_view a, std::string_view b) noexcept;

/// The fields that Connection names beside `close`, `keep-alive` and `upgrade`: they are dropped.
class Nominated {
 public:
  explicit Nominated(std::span<const net::HttpField> fields) noexcept;
  [[nodiscard]] bool Has(std::string_view name) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// Connection names more fields than fit here: refuse the message.
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }

 private:
  std::array<std::string_view, 16> names_;
  std::size_t count_ = 0;
  bool too_many_ = false;
};

/// Calls `visit` with each element of a comma-separated list, trimmed, until it returns false.
template <class Visit>
void EachElement(std::string_view list, Visit visit) {
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view element = list.substr(0, comma);
    while (!element.empty() && (element.front() == ' ' || element.front() == '\t')) {
      element.remove_prefix(1);
    }
    while (!element.empty() && (element.back() == ' ' || element.back() == '\t')) {
      element.remove_suffix(1);
    }
    if (!element.empty() && !visit(element)) return;
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace tidegate
