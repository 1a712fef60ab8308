// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis_error.hpp"

namespace tidegate::redis {
namespace {

struct Word {
  std::string_view code;  ///< As Redis writes it.
  std::string_view name;  ///< As metrics do.
};
/// In the order of ErrorKind.
constexpr std::array<Word, kErrorKinds> kWords = {{{"NOSCRIPT", "noscript"},
                                                   {"LOADING", "loading"},
                                                   {"BUSY", "busy"},
                                                   {"TRYAGAIN", "tryagain"},
                                                   {"CLUSTERDOWN", "clusterdown"},
                                                   {"MASTERDOWN", "masterdown"},
                                                   {"MOVED", "moved"},
                                                   {"ASK", "ask"},
                                                   {"READONLY", "readonly"},
                                                   {"OOM", "oom"},
                                                   {"MISCONF", "misconf"},
                                                   {"NOREPLICAS", "noreplicas"},
                                                   {"NOPERM", "noperm"},
                                                   {"NOAUTH", "noauth"},
                                                   {"WRONGPASS", "wrongpass"},
                                                   {"NOPROTO", "noproto"},
                                                   {"\n", "tls"},  // Nobody says that.
                                                   {"", "other"}}};

ErrorKind Lookup(std::string_view word) noexcept {
  for (std::size_t i = 0; i + 1 < kErrorKinds; ++i) {
    if (kWords[i].code == word) return static_cast<ErrorKind>(i);
  }
  return ErrorKind::kOther;
}

}  // namespace

std::string_view Name(Reason reason) noexcept { return tidegate::Name(DecisionReason(reason)); }

std::string_view Name(ErrorKind kind) noexcept {
  return kWords[static_cast<std::size_t>(kind)].name;
}

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
    case ErrorKind::kNoScript:
      return Remedy::kSendText;
    case ErrorKind::kLoading:
    case ErrorKind::kBusy:
    case ErrorKind::kMasterDown:
      return Remedy::kRetryOnce;
    case ErrorKind::kTryAgain:
    case ErrorKind::kClusterDown:
    case ErrorKind::kMoved:
    case ErrorKind::kAsk:
      return Remedy::kElsewhere;
    case ErrorKind::kReadOnly:
    case ErrorKind::kNoAuth:
      return Remedy::kReconnect;
    default:
      return Remedy::kGiveUp;
  }
}

}  // namespace tidegate::redis
