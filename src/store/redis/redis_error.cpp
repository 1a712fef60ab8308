// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_error.hpp"

#include <algorithm>

#include "base/ascii.hpp"

namespace tidegate::redis {
namespace {

/// The names of all ErrorKinds in metrics. Redis sends all but the last two, in capitals.
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

/// Reads `host:port`. Redis writes IPv6 without brackets, so the last colon divides the two.
std::optional<Endpoint> ReadTarget(std::string_view text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string_view host = text.substr(0, colon);
  const auto port = ParseNumber<std::uint16_t>(text.substr(std::min(colon + 1, text.size())), 1);
  if (!port) return std::nullopt;
  if (host.empty() || host == "?") return Endpoint{.port = *port};
  if (host.size() > 2 && host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  if (!IsHost(host) || host.find_first_of("[]") != std::string_view::npos) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = *port};
}

}  // namespace

std::string_view Name(Reason reason) noexcept { return tidegate::Name(DecisionReason(reason)); }

std::string_view Name(ErrorKind kind) noexcept { return kNames[static_cast<std::size_t>(kind)]; }

ErrorKind KindOf(std::string_view error) noexcept {
  const ErrorKind plain = Lookup(error.substr(0, error.find(' ')));
  if (plain != ErrorKind::kOther) return plain;
  // Redis 6.2 sends this NOPERM without its name: "The user executing the script can't run this
  // command".
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

std::optional<Redirect> ReadRedirect(std::string_view error) {
  const bool moved = error.starts_with("MOVED ");
  if (!moved && !error.starts_with("ASK ")) return std::nullopt;
  (void)TakeUntil(error, ' ');
  const auto slot = ReadWhole(TakeUntil(error, ' '));
  // A further word would become part of the host or the port, which contain no space.
  auto target = ReadTarget(error);
  if (!slot || *slot >= static_cast<std::int64_t>(kSlots) || !target) return std::nullopt;
  return Redirect{.kind = moved ? Redirect::Kind::kMoved : Redirect::Kind::kAsk,
                  .slot = static_cast<Slot>(*slot),
                  .to = *std::move(target)};
}

}  // namespace tidegate::redis
