// SPDX-License-Identifier: Apache-2.0
// Responses of the gateway itself, the head of the upstream's response, and the access log.

#include "decision/answer.hpp"
#include "gateway/gateway.hpp"
#include "gateway/proxied_exchange.hpp"
#include "gateway/proxy_head.hpp"

namespace tidegate {
namespace {

using net::OutBuffer;

bool IsGrpc(const net::HttpHead& head) noexcept {
  const net::HttpField* const type = net::FindField(head.all(), "content-type");
  return type != nullptr &&
         EqualsIgnoreCase(type->value.substr(0, type->value.find_first_of(";+ ")),
                          "application/grpc");
}

std::int64_t MicrosBetween(net::Deadlines::Clock::time_point from,
                           net::Deadlines::Clock::time_point to) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

/// Returns how the client finds the end of the response's body.
AnswerBody BodyOf(const net::ResponseHead& head, std::string_view method) noexcept {
  if (head.body == net::BodyFraming::kLength) return AnswerBody::kLength;
  if (head.body != net::BodyFraming::kNone) return AnswerBody::kStream;
  // A 204 has neither Content-Length nor Transfer-Encoding, even if the upstream sent one (RFC
  // 9110, 8.6).
  if (method != "HEAD" || head.status == 204) return AnswerBody::kNone;
  if (net::FindField(head.all(), "transfer-encoding") != nullptr) return AnswerBody::kStream;
  return net::FindField(head.all(), "content-length") != nullptr ? AnswerBody::kLength
                                                                 : AnswerBody::kNone;
}

}  // namespace

void ProxiedExchange::AnswerDenied() {
  const Answer answer = quotas_.ShownTo(trusted_);
  const int status = answer.status();
  const auto outcome = status == 429     ? ExchangeOutcome::kLimited
                       : status != 403   ? ExchangeOutcome::kClosed
                       : answer.banned() ? ExchangeOutcome::kBanned
                                         : ExchangeOutcome::kDenied;
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  if (status != 403 && IsGrpc(head_)) return AnswerGrpc(answer, status, outcome);
  const Config::Responses& responses = quotas_.snapshot().responses;
  const Denial denial(answer, route_ == nullptr ? nullptr : &route_->spec.denial, responses,
                      gateway_.pipeline().RetryJitter(responses));
  OutBuffer body;
  denial.WriteBody(body, {.id = text_.request_id, .method = text_.method, .path = text_.path});
  OutBuffer& out = BeginOwnHead(denial.status());
  denial.WriteFields(out, RouteHeaders());
  out << "Content-Type: " << denial.content_type() << "\r\n";
  SendOwn(body.view(), outcome);
}

/// gRPC clients evaluate the gRPC status, which is RESOURCE_EXHAUSTED, or UNAVAILABLE if a failure
/// policy denied the request.
void ProxiedExchange::AnswerGrpc(const Answer& answer, int status, ExchangeOutcome outcome) {
  OutBuffer& out = BeginOwnHead(200);
  out << "Content-Type: application/grpc\r\ngrpc-status: " << (status == 429 ? 8 : 14)
      << "\r\ngrpc-message: "
      << (status == 429 ? "quota exceeded" : "temporarily reduced capacity");
  if (answer.shown != nullptr && answer.shown == answer.governing) {
    out << ": rule " << answer.shown->rule;
  }
  out << "\r\n";
  WriteRateLimit(out, status, OtherRetryAfter::kNo);
  WriteRouteHeaders(out);
  SendOwn({}, outcome);
}

void ProxiedExchange::AnswerProblem(int status, std::string_view detail, ExchangeOutcome outcome,
                                    std::string_view lines) {
  if (client_ == nullptr) return End(outcome, ClientStream::Ending::kCut);
  OutBuffer body;
  net::WriteProblem(body, status, detail);
  OutBuffer& out = BeginOwnHead(status);
  out << "Cache-Control: no-store\r\n" << lines;
  const bool other = lines.find("Retry-After") != std::string_view::npos;
  WriteRateLimit(out, 200, OtherRetryAfter{other});
  WriteRouteHeaders(out);
  out << "Content-Type: application/problem+json\r\n";
  SendOwn(body.view(), outcome);
}

/// Begins a response of the gateway itself; more field lines may follow.
OutBuffer& ProxiedExchange::BeginOwnHead(int status) {
  status_ = status;
  OutBuffer& out = client_->BeginHead(status, net::ReasonPhrase(status));
  out << "X-Content-Type-Options: nosniff\r\nDate: " << net::HttpDate()
      << "\r\nX-Request-Id: " << text_.request_id << "\r\n";
  return out;
}

/// Sends the response that BeginOwnHead began, and ends the exchange.
void ProxiedExchange::SendOwn(std::string_view body, ExchangeOutcome outcome) {
  client_->EndHead(AnswerBody::kLength, body.size());
  client_->SendBody(body);
  client_->SendEnd({}, {});
  End(outcome, client_->Flush() ? ClientStream::Ending::kComplete : ClientStream::Ending::kCut);
}

std::span<const HeaderEdits::Set> ProxiedExchange::RouteHeaders() const noexcept {
  if (route_ == nullptr) return {};
  return route_->spec.response_headers.set;
}

/// Writes the fields that the route sets, because pages of other origins can read a response only
/// if it has the route's CORS fields.
void ProxiedExchange::WriteRouteHeaders(OutBuffer& out) const {
  for (const HeaderEdits::Set& field : RouteHeaders()) {
    if (!IsDenialField(field.name)) out << field.name << ": " << field.value << "\r\n";
  }
}

/// Writes the RateLimit fields, or nothing if there is no decision yet. `other` says whether the
/// response has a Retry-After from another source.
void ProxiedExchange::WriteRateLimit(OutBuffer& out, int status, OtherRetryAfter other) {
  Answer answer = quotas_.ShownTo(trusted_);
  if (answer.governing == nullptr) return;
  answer.shows_more_after = other == OtherRetryAfter::kNo;
  const Config::Responses& responses = quotas_.snapshot().responses;
  WriteAnswerFields(out, answer, status, responses,
                    status < 400 ? Micros{0} : gateway_.pipeline().RetryJitter(responses));
}

/// Writes the head of the upstream's final response.
void ProxiedExchange::WriteResponseHead() {
  const net::ResponseHead& head = attempt_.head();
  const AnswerBody body = BodyOf(head, text_.method);
  Answer answer = quotas_.ShownTo(trusted_);
  const Decision* governing = answer.shown;
  // Without a counted quota the gateway writes no RateLimit fields, and forwards those of the
  // upstream.
  if (governing != nullptr && !IsCounted(*governing)) governing = nullptr;
  OutBuffer& out = client_->BeginHead(head.status, head.reason);
  const Config::Responses& responses = quotas_.snapshot().responses;
  const OlderFields older = WriteAnswerHead(
      out, head,
      {.request_id = text_.request_id,
       .date = net::HttpDate(),
       .governing = governing,
       .older = {responses.ratelimit_legacy, responses.x_ratelimit},
       .stream = head.body != net::BodyFraming::kNone && body == AnswerBody::kStream},
      route_->spec.response_headers);
  answer.shows_more_after =
      head.status < 400 || net::FindField(head.all(), "retry-after") == nullptr;
  if (answer.governing != nullptr) {
    if (older.ratelimit == responses.ratelimit_legacy &&
        older.x_ratelimit == responses.x_ratelimit) {
      WriteAnswerFields(out, answer, 200, responses, Micros{0});
    } else {
      Config::Responses fewer = responses;
      fewer.ratelimit_legacy = older.ratelimit;
      fewer.x_ratelimit = older.x_ratelimit;
      WriteAnswerFields(out, answer, 200, fewer, Micros{0});
    }
  }
  client_->EndHead(body, head.content_length);
}

void ProxiedExchange::Log(ExchangeOutcome outcome) {
  OutBuffer* const line = gateway_.BeginLine();
  if (line == nullptr) return;
  OutBuffer& out = *line;
  const auto now = net::Deadlines::Clock::now();
  out << R"({"time":")";
  WriteLogTime(out);
  out << R"(","request_id":")" << text_.request_id << R"(","client":")" << text_.client
      << R"(","method":")" << text_.method << R"(","host":")";
  net::WriteJsonText(out, text_.host);
  out << R"(","path":")";
  net::WriteJsonText(out, text_.path);
  out << R"(","status":)" << status_ << R"(,"outcome":")"
      << kExchangeOutcomeNames[static_cast<std::size_t>(outcome)] << '"';
  if (route_ != nullptr) out << R"(,"route":")" << route_->spec.id << '"';
  const Answer answer = quotas_.Decided();
  if (answer.governing != nullptr) {
    const Decision& decision = *answer.governing;
    out << R"(,"rule":")" << decision.rule << R"(","allowed":)"
        << (answer.allowed ? "true" : "false");
    if (decision.decided_by != DecidedBy::kOperator) {
      out << R"(,"remaining":)" << decision.remaining;
    }
    out << R"(,"decided_by":")" << Name(decision.decided_by) << R"(","reason":")"
        << Name(decision.reason) << '"';
  }
  out << R"(,"decision_us":)" << MicrosBetween(begun_, decided_);
  if (const Member* const target = attempt_.target()) {
    out << R"(,"upstream":")" << target->text << '"';
  }
  if (attempt_.sent_at() != net::Deadlines::Clock::time_point{}) {
    out << R"(,"upstream_us":)" << MicrosBetween(attempt_.sent_at(), now);
  }
  if (tried_.count() > 1) out << R"(,"attempts":)" << tried_.count();
  if (!attempt_.problem().empty()) {
    out << R"(,"problem":")";
    net::WriteJsonText(out, attempt_.problem());
    out << '"';
  }
  out << R"(,"total_us":)" << MicrosBetween(begun_, now) << R"(,"bytes_in":)" << bytes_in_
      << R"(,"bytes_out":)" << bytes_out_ << "}\n";
  gateway_.FinishLine();
}

}  // namespace tidegate
