// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_error.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "store/redis/endpoint.hpp"

namespace tidegate::redis {
namespace {

/// In the order of ErrorKind, as metrics name them. Redis writes all but the last two, in capitals.
constexpr std::array<std::string_view, kErrorKinds> kNames = {
    "noscript", "loading", "busy",      "tryagain", "clusterdown", "masterdown",
    "moved",    "ask",     "readonly",  "oom",      "misconf",     "noreplicas",
    "noperm",   "noauth",  "wrongpass", "noproto",  "tls",         "other"};

ErrorKind Lookup(std::string_view word) noexcept {
  for (std::size_t i = 0; i < static_cast<std::size_t>(ErrorKind::kTls); ++i) {
    const bool same = std::ranges::equal(word, kNames[i], {},
                                         [](char c) { return IsUpper(c) ? Lower(c) : '\0'; });
    if (same) return static_cast<ErrorKind>(i);
  }
  return ErrorKind::kOther;
}

}  // namespace

std::string_view Name(Reason reason) noexcept { return tidegate::Name(DecisionReason(reason)); }

std::string_view Name(ErrorKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

ErrorKind KindOf(std::string_view error) noexcept {
  const ErrorKind plain = Lookup(error.substr(0, error.find(' ')));
  if (plain != ErrorKind::kOther) return plain;
  // "The user executing the script can't run this command" is NOPERM, by 6.2 without its name.
  if (error.find("can't run this command") != std::string_view::npos) return ErrorKind::kNoPerm;
  for (std::size_t at = error.find(": -"); at != std::string_view::npos;
       at = error.find(": -", at + 3)) {
    const std::string_view inner = error.substr(at + 3);
    const ErrorKind kind = Lookup(inner.substr(0, inner.find(' ')));
    if (kind != ErrorKind::kOther) return kind;
  }
  return ErrorKind::kOther;
}

Remedy RemedyOf(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::kNoScript: return Remedy::kSendText;
    case ErrorKind::kLoading:
    case ErrorKind::kBusy:
    case ErrorKind::kMasterDown: return Remedy::kRetryOnce;
    case ErrorKind::kTryAgain:
    case ErrorKind::kClusterDown:
    case ErrorKind::kMoved:
    case ErrorKind::kAsk: return Remedy::kElsewhere;
    case ErrorKind::kReadOnly:
    case ErrorKind::kNoAuth: return Remedy::kReconnect;
    default: return Remedy::kGiveUp;
  }
}

namespace {

/// The port is behind the last colon, since Redis writes IPv6 without brackets.
std::optional<Endpoint> ReadTarget(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = ReadPort(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.empty() || host == "?") return Endpoint{.port = *port};
  if (host.size() > 2 && host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  if (!IsHost(host) || host.find_first_of("[]") != std::string_view::npos) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = *port};
}

}  // namespace

std::optional<Redirect> ReadRedirect(std::string_view error) {
  const bool moved = error.starts_with("MOVED ");
  if (!moved && !error.starts_with("ASK ")) return std::nullopt;
  error.remove_prefix(error.find(' ') + 1);
  const std::size_t space = error.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto slot = ReadWhole(error.substr(0, space));
  // A further word would end up in the host or the port, where no space may be.
  auto target = ReadTarget(error.substr(space + 1));
  if (!slot || *slot >= static_cast<std::int64_t>(kSlots) || !target) return std::nullopt;
  return Redirect{.kind = moved ? Redirect::Kind::kMoved : Redirect::Kind::kAsk,
                  .slot = static_cast<Slot>(*slot),
                  .to = *std::move(target)};
}

}  // namespace tidegate::redis
