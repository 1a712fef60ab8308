// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/buffers.hpp"
#include "net/http1_parser.hpp"
#include "rules/rule_set.hpp"

namespace tidegate {

/// The meaning of a field to a proxy.
enum class FieldKind : std::uint8_t {
  kEndToEnd,  ///< Forwarded.
  kFraming,   ///< Content-Length, Transfer-Encoding: written by the gateway.
  kHopByHop,  ///< Belongs to one connection: dropped.
  kUpgrade,   ///< Forwarded if the connection may be upgraded.
  kTe,        ///< Only its element `trailers` is forwarded.
  kTrailer,   ///< Forwarded with a body that can have trailers.
  kHost,
  kExpect,
  /// `Forwarded`, X-Forwarded-*, X-Real-IP, X-Original-URL and others: only from trusted peers.
  kForwarded,
  kXForwardedFor,
  kXForwardedProto,
  kXForwardedHost,
  kRequestId,
  kDate,
};

/// Returns the kind of a field by its name, ignoring case and treating `_` as `-`, as CGI does.
[[nodiscard]] FieldKind KindOf(std::string_view name) noexcept;

/// Decides for each field of a request's head whether it is forwarded and visible to rules. Rules
/// see only the fields that the upstream will see. Otherwise a client could get a fresh quota with
/// each new value of a field that is counted and then dropped.
class RequestFields {
 public:
  struct Policy {
    bool trusted = false;      ///< The peer is trusted to name the clients of its requests.
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

/// Writes the end-to-end trailers of a message, without fields that the route edits, and without
/// fields that would mislead a client that merges trailers into the head. For a request, `policy`
/// is given. Then this also drops the fields that rules read and, unless the policy forwards them,
/// fields with `_`: an upstream that merges trailers into the head would see a key that was not
/// counted.
void WriteTrailers(net::OutBuffer& out, std::span<const net::HttpField> trailers,
                   const HeaderEdits& edits, const RequestFields::Policy* policy = nullptr);
/// Returns true if the route removes or sets the field.
[[nodiscard]] bool Edited(const HeaderEdits& edits, std::string_view name) noexcept;

/// The names that Connection lists besides `close`, `keep-alive` and `upgrade`. The fields with
/// these names are dropped.
class Nominated {
 public:
  explicit Nominated(std::span<const net::HttpField> fields) noexcept;
  /// Returns the names in `head`, which is the head of a request or a response.
  template <class Head>
  [[nodiscard]] static Nominated By(const Head& head) noexcept {
    return Nominated(head.connection_names_fields ? head.all() : std::span<const net::HttpField>());
  }

  [[nodiscard]] bool Has(std::string_view name) const noexcept { return count_ != 0 && Find(name); }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// Returns true if Connection names more fields than fit here: refuse the message.
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }

 private:
  /// A plain pointer and size, because an array of 16 std::string_views would be initialised.
  struct Name {
    const char* data;
    std::size_t size;
  };

  [[nodiscard]] bool Find(std::string_view name) const noexcept;

  std::array<Name, 16> names_;
  std::size_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace tidegate
