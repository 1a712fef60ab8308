// SPDX-License-Identifier: Apache-2.0
#include "gateway/proxy_head.hpp"

#include <algorithm>
#include <optional>

#include "base/units.hpp"

namespace tidegate {
namespace {

using net::HttpField;
using net::OutBuffer;

void WriteField(OutBuffer& out, std::string_view name, std::string_view value) {
  char* to = out.Reserve(name.size() + value.size() + 4);
  char* const begin = to;
  to = std::ranges::copy(name, to).out;
  *to++ = ':';
  *to++ = ' ';
  to = std::ranges::copy(value, to).out;
  *to++ = '\r';
  *to++ = '\n';
  out.Advance(static_cast<std::size_t>(to - begin));
}

/// Copies field lines of a message. Adjacent lines that already have the form that the gateway
/// writes are copied together; usually these are all but a few. Call Flush at the end.
class FieldCopier {
 public:
  explicit FieldCopier(OutBuffer& out) noexcept : out_(out) {}

  void Add(const HttpField& field) {
    const char* const begin = field.name.data();
    if (begin != end_) {
      Flush();
      begin_ = end_ = begin;
    }
    const char* const name_end = begin + field.name.size();
    const char* const value_end = field.value.data() + field.value.size();
    // The end of a line follows each value.
    if (field.value.data() == name_end + 2 && name_end[0] == ':' && name_end[1] == ' ' &&
        value_end[0] == '\r' && value_end[1] == '\n') {
      end_ = value_end + 2;
      return;
    }
    Flush();
    WriteField(out_, field.name, field.value);
  }

  void Flush() {
    if (end_ != begin_) out_ << std::string_view(begin_, static_cast<std::size_t>(end_ - begin_));
    begin_ = end_ = nullptr;
  }

 private:
  OutBuffer& out_;
  const char* begin_ = nullptr;  ///< The lines that are not copied yet.
  const char* end_ = nullptr;
};

/// Joins the X-Forwarded-For lines of a trusted peer and appends the peer's address.
void WriteForwardedFor(OutBuffer& out, const net::HttpHead& head, const RequestFields& fields,
                       const Introduction& about) {
  out << "X-Forwarded-For: ";
  for (std::size_t i = 0; i < head.field_count; ++i) {
    if (fields[i] == FieldKind::kXForwardedFor && !head.fields[i].value.empty()) {
      out << head.fields[i].value << ", ";
    }
  }
  out << about.peer << "\r\n";
}

struct Seen {
  bool proto = false;
  bool host = false;
  bool te_trailers = false;
};

/// Returns true if the client's field is forwarded to the upstream unchanged.
bool PassesOn(const HttpField& field, FieldKind kind, const net::HttpHead& head,
              Seen& seen) noexcept {
  switch (kind) {
    case FieldKind::kEndToEnd:
    case FieldKind::kDate:
    case FieldKind::kForwarded: return true;
    case FieldKind::kTrailer: return head.body == net::BodyFraming::kChunked;
    case FieldKind::kTe:
      seen.te_trailers |= net::http1::HasElement(field.value, "trailers");
      return false;
    case FieldKind::kXForwardedProto: return seen.proto = true;
    case FieldKind::kXForwardedHost: return seen.host = true;
    default: return false;
  }
}

void WriteUpgrade(OutBuffer& out, std::span<const HttpField> fields) {
  out << "Connection: Upgrade\r\n";
  for (const HttpField& field : fields) {
    if (EqualsIgnoreCase(field.name, "upgrade")) WriteField(out, "Upgrade", field.value);
  }
}

void WriteConnection(OutBuffer& out, const net::HttpHead& head, const Introduction& about,
                     const Seen& seen) {
  if (about.upgrade) {
    WriteUpgrade(out, head.all());
  } else if (seen.te_trailers) {
    out << "TE: trailers\r\nConnection: TE\r\n";
  }
}

void WriteFraming(OutBuffer& out, const net::HttpHead& head) {
  if (head.body == net::BodyFraming::kChunked) {
    out << "Transfer-Encoding: chunked\r\n";
  } else if (head.body == net::BodyFraming::kLength) {
    out << "Content-Length: " << head.content_length << "\r\n";
  }
  if (head.expects_continue) out << "Expect: 100-continue\r\n";
}

/// Returns 0 for `RateLimit-Limit`, `-Remaining`, `-Reset`, 1 for those with `X-`, else nothing.
std::optional<std::size_t> OlderForm(std::string_view name) noexcept {
  if (name.size() < 15 || name.size() > 21) return std::nullopt;
  const bool x = name[0] == 'x' || name[0] == 'X';
  if (x) name.remove_prefix(2);
  const bool fits = EqualsIgnoreCase(name, "ratelimit-limit") ||
                    EqualsIgnoreCase(name, "ratelimit-remaining") ||
                    EqualsIgnoreCase(name, "ratelimit-reset");
  if (!fits) return std::nullopt;
  return x ? 1 : 0;
}

/// Returns which older RateLimit fields the gateway writes. The response announces one quota: that
/// of the gateway or that of the upstream, whichever has fewer units left. If the upstream's fields
/// do not say how many units are left, the gateway forwards them.
OlderFields Tighter(const net::ResponseHead& head, const AnswerNotes& notes) noexcept {
  OlderFields older = notes.older;
  if (notes.governing == nullptr) return {false, false};
  // For each form: whether the upstream's response has any of its fields, and the remaining quota
  // in them.
  struct Theirs {
    bool any = false;
    std::optional<std::int64_t> remaining;
  } theirs[2];
  for (const HttpField& field : head.all()) {
    const auto form = OlderForm(field.name);
    if (!form) continue;
    theirs[*form].any = true;
    if (EqualsIgnoreCase(field.name.substr(field.name.rfind('-') + 1), "remaining")) {
      theirs[*form].remaining = ParseNumber<std::int64_t>(field.value);
    }
  }
  const auto announces_ours = [&](const Theirs& form) {
    return !form.any || (form.remaining && notes.governing->remaining < *form.remaining);
  };
  older.ratelimit = older.ratelimit && announces_ours(theirs[0]);
  older.x_ratelimit = older.x_ratelimit && announces_ours(theirs[1]);
  return older;
}

/// Returns true if a field of the gateway, whose quota has less left, replaces this field.
bool Superseded(std::string_view name, const OlderFields& older) noexcept {
  if (!older.ratelimit && !older.x_ratelimit) return false;
  const auto form = OlderForm(name);
  return form && (*form == 1 ? older.x_ratelimit : older.ratelimit);
}

/// Returns the protocol in the Upgrade fields if there is exactly one; otherwise an empty view.
std::string_view OnlyProtocol(std::span<const HttpField> fields) noexcept {
  std::size_t protocols = 0;
  std::string_view only;
  for (const HttpField& field : fields) {
    if (!EqualsIgnoreCase(field.name, "upgrade")) continue;
    net::http1::EachElement(field.value, [&](std::string_view protocol) {
      ++protocols;
      only = protocol;
      return true;
    });
  }
  return protocols == 1 ? only : std::string_view{};
}

}  // namespace

std::string_view UpgradeProtocol(const net::HttpHead& head) noexcept {
  if (!head.upgrade || head.method != "GET") return {};
  if (head.body == net::BodyFraming::kChunked || head.content_length != 0) return {};
  const std::string_view protocol = OnlyProtocol(head.all());
  const std::string_view name = protocol.substr(0, protocol.find('/'));
  const bool http = EqualsIgnoreCase(name, "h2c") || EqualsIgnoreCase(name, "h2") ||
                    EqualsIgnoreCase(name, "http") || EqualsIgnoreCase(name, "tls");
  return http ? std::string_view{} : protocol;
}

bool SwitchesTo(const net::ResponseHead& head, std::string_view requested) noexcept {
  if (requested.empty() || !head.upgrade) return false;
  const std::string_view offered = OnlyProtocol(head.all());
  if (EqualsIgnoreCase(requested, offered)) return true;
  return requested.find('/') == std::string_view::npos &&
         EqualsIgnoreCase(requested, offered.substr(0, offered.find('/')));
}

std::string_view GivenRequestId(const net::HttpHead& head, const RequestFields& fields) noexcept {
  for (std::size_t i = 0; i < head.field_count; ++i) {
    if (fields[i] != FieldKind::kRequestId) continue;
    const HttpField& field = head.fields[i];
    return IsRequestId(field.value) ? field.value : std::string_view{};
  }
  return {};
}

void WriteRequestHead(OutBuffer& out, const net::HttpHead& head, const RequestFields& fields,
                      const Introduction& about, const HeaderEdits& edits) {
  out << head.method << ' ' << about.path;
  // An empty query is forwarded too.
  if (const std::size_t mark = head.target.find('?'); mark != std::string_view::npos) {
    out << '?' << head.query;
  }
  out << " HTTP/1.1\r\nHost: " << about.host << "\r\n";
  Seen seen;
  FieldCopier copier(out);
  for (std::size_t i = 0; i < head.field_count; ++i) {
    const HttpField& field = head.fields[i];
    if (!PassesOn(field, fields[i], head, seen)) continue;
    if (!edits.empty() && Edited(edits, field.name)) continue;
    copier.Add(field);
  }
  copier.Flush();
  for (const HeaderEdits::Set& set : edits.set) WriteField(out, set.name, set.value);
  WriteForwardedFor(out, head, fields, about);
  if (!seen.proto) WriteField(out, "X-Forwarded-Proto", about.scheme);
  if (!seen.host && !head.host.empty()) WriteField(out, "X-Forwarded-Host", head.host);
  WriteField(out, "X-Request-Id", about.request_id);
  out << (head.minor == 0 ? "Via: 1.0 tidegate\r\n" : "Via: 1.1 tidegate\r\n");
  WriteConnection(out, head, about, seen);
  WriteFraming(out, head);
  out << "\r\n";
}

OlderFields WriteAnswerHead(OutBuffer& out, const net::ResponseHead& head, const AnswerNotes& notes,
                            const HeaderEdits& edits) {
  const auto nominated = Nominated::By(head);
  const OlderFields older = Tighter(head, notes);
  bool dated = false;
  FieldCopier copier(out);
  for (const HttpField& field : head.all()) {
    switch (KindOf(field.name)) {
      case FieldKind::kDate: dated = true; break;
      case FieldKind::kTrailer:
        if (!notes.stream) continue;
        break;
      case FieldKind::kHopByHop:
      case FieldKind::kUpgrade:
      case FieldKind::kFraming:
      case FieldKind::kTe:
      case FieldKind::kRequestId: continue;
      default: break;
    }
    if (nominated.Has(field.name)) continue;
    if (Superseded(field.name, older)) continue;
    if (!edits.empty() && Edited(edits, field.name)) continue;
    copier.Add(field);
  }
  copier.Flush();
  for (const HeaderEdits::Set& set : edits.set) WriteField(out, set.name, set.value);
  if (!dated) WriteField(out, "Date", notes.date);
  if (!notes.request_id.empty()) WriteField(out, "X-Request-Id", notes.request_id);
  if (notes.upgrade) WriteUpgrade(out, head.all());
  return older;
}

}  // namespace tidegate
