// SPDX-License-Identifier: Apache-2.0
#include "gateway/proxy_head.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "gateway/fields.hpp"

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

void WriteEdits(OutBuffer& out, const HeaderEdits& edits) {
  for (const HeaderEdits::Set& set : edits.set) WriteField(out, set.name, set.value);
}

/// Joins the X-Forwarded-For lines of a trusted peer and appends the peer.
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

bool AsksForTrailers(std::string_view te) noexcept {
  bool found = false;
  EachElement(te, [&found](std::string_view element) {
    found |= SameName(element, "trailers");
    return !found;
  });
  return found;
}

/// Returns true if the client's field goes to the upstream as it is.
bool PassesOn(const HttpField& field, FieldKind kind, const net::HttpHead& head,
              Seen& seen) noexcept {
  switch (kind) {
    case FieldKind::kEndToEnd:
    case FieldKind::kDate:
    case FieldKind::kForwarded:
      return true;
    case FieldKind::kTrailer:
      return head.body == net::HttpBody::kChunked;
    case FieldKind::kTe:
      seen.te_trailers |= AsksForTrailers(field.value);
      return false;
    case FieldKind::kXForwardedProto:
      return seen.proto = true;
    case FieldKind::kXForwardedHost:
      return seen.host = true;
    default:
      return false;
  }
}

void WriteConnection(OutBuffer& out, const net::HttpHead& head, const Introduction& about,
                     const Seen& seen) {
  if (about.upgrade) {
    out << "Connection: Upgrade\r\n";
    for (const HttpField& field : head.all()) {
      if (SameName(field.name, "upgrade")) WriteField(out, "Upgrade", field.value);
    }
  } else if (seen.te_trailers) {
    out << "TE: trailers\r\nConnection: TE\r\n";
  }
}

void WriteFraming(OutBuffer& out, const net::HttpHead& head) {
  if (head.body == net::HttpBody::kChunked) {
    out << "Transfer-Encoding: chunked\r\n";
  } else if (head.body == net::HttpBody::kLength) {
    out << "Content-Length: " << head.content_length << "\r\n";
  }
  if (head.expects_continue) out << "Expect: 100-continue\r\n";
}

std::optional<std::int64_t> Number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// 0: one of `RateLimit-Limit`, `-Remaining`, `-Reset`; 1: of the same with `X-`; nothing: neither.
std::optional<std::size_t> OlderForm(std::string_view name) noexcept {
  if (name.size() < 15 || name.size() > 21) return std::nullopt;
  const bool x = name[0] == 'x' || name[0] == 'X';
  if (x) name.remove_prefix(2);
  const bool fits = SameName(name, "ratelimit-limit") || SameName(name, "ratelimit-remaining") ||
                    SameName(name, "ratelimit-reset");
  if (!fits) return std::nullopt;
  return x ? 1 : 0;
}

/// Older RateLimit fields have room for one quota only: the tighter one is told. Where theirs do
/// not say what is left, nobody knows, and they stay.
OlderFields Tighter(const net::ResponseHead& head, const AnswerNotes& notes) noexcept {
  OlderFields older = notes.older;
  if (notes.governing == nullptr) return {false, false};
  // By form: whether the upstream has any of its fields, and how much they say is left.
  struct Theirs {
    bool any = false;
    std::optional<std::int64_t> remaining;
  } theirs[2];
  for (const HttpField& field : head.all()) {
    const auto form = OlderForm(field.name);
    if (!form) continue;
    theirs[*form].any = true;
    if (SameName(field.name.substr(field.name.rfind('-') + 1), "remaining")) {
      theirs[*form].remaining = Number(field.value);
    }
  }
  const auto ours_is_told = [&](const Theirs& form) {
    return !form.any || (form.remaining && notes.governing->remaining < *form.remaining);
  };
  older.ratelimit = older.ratelimit && ours_is_told(theirs[0]);
  older.x_ratelimit = older.x_ratelimit && ours_is_told(theirs[1]);
  return older;
}

/// Dropped since ours, which is tighter, takes its place.
bool Superseded(std::string_view name, const OlderFields& older) noexcept {
  if (!older.ratelimit && !older.x_ratelimit) return false;
  const auto form = OlderForm(name);
  return form && (*form == 1 ? older.x_ratelimit : older.ratelimit);
}

}  // namespace

bool MayUpgrade(const net::HttpHead& head) noexcept {
  if (!head.upgrade || head.method != "GET") return false;
  if (head.body != net::HttpBody::kNone && head.content_length != 0) return false;
  std::size_t protocols = 0;
  bool http = false;
  for (const HttpField& field : head.all()) {
    if (!SameName(field.name, "upgrade")) continue;
    EachElement(field.value, [&](std::string_view protocol) {
      ++protocols;
      const std::string_view name = protocol.substr(0, protocol.find('/'));
      http |= SameName(name, "h2c") || SameName(name, "h2") || SameName(name, "http") ||
              SameName(name, "tls");
      return true;
    });
  }
  return protocols == 1 && !http && head.body != net::HttpBody::kChunked;
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
  for (std::size_t i = 0; i < head.field_count; ++i) {
    const HttpField& field = head.fields[i];
    if (!PassesOn(field, fields[i], head, seen)) continue;
    if (!edits.empty() && Edited(edits, field.name)) continue;
    WriteField(out, field.name, field.value);
  }
  WriteEdits(out, edits);
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
  const Nominated nominated(head.all());
  const OlderFields older = Tighter(head, notes);
  bool dated = false;
  for (const HttpField& field : head.all()) {
    switch (KindOf(field.name)) {
      case FieldKind::kDate:
        dated = true;
        break;
      case FieldKind::kTrailer:
        if (!notes.stream) continue;
        break;
      case FieldKind::kHopByHop:
      case FieldKind::kUpgrade:
      case FieldKind::kFraming:
      case FieldKind::kTe:
      case FieldKind::kRequestId:
        continue;
      default:
        break;
    }
    if (nominated.Has(field.name)) continue;
    if (Superseded(field.name, older)) continue;
    if (!edits.empty() && Edited(edits, field.name)) continue;
    WriteField(out, field.name, field.value);
  }
  WriteEdits(out, edits);
  if (!dated) WriteField(out, "Date", notes.date);
  if (!notes.request_id.empty()) WriteField(out, "X-Request-Id", notes.request_id);
  if (notes.upgrade) {
    out << "Connection: Upgrade\r\n";
    for (const HttpField& field : head.all()) {
      if (SameName(field.name, "upgrade")) WriteField(out, "Upgrade", field.value);
    }
  }
  return older;
}

}  // namespace tidegate
