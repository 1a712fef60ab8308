// SPDX-License-Identifier: Apache-2.0
#include "decision/denial.hpp"

#include <algorithm>

#include "rules/rule_set.hpp"

namespace tidegate {

Denial::Denial(const Answer& answer, const std::optional<DenialSpec>* route,
               const Config::Responses& responses, Micros jitter)
    : answer_(answer), responses_(responses), jitter_(jitter), status_(answer.status()) {
  if (answer.rule != nullptr && answer.rule->denial) {
    spec_ = &*answer.rule->denial;
  } else if (route != nullptr && *route) {
    spec_ = &**route;
  } else if (responses.denial) {
    spec_ = &*responses.denial;
  }
  if (status_ == 429 && spec_ != nullptr) status_ = spec_->status.value_or(status_);
}

void Denial::WriteFields(net::OutBuffer& out,
                         std::span<const HeaderEdits::Set> response_headers) const {
  WriteAnswerFields(out, answer_, status_, responses_, jitter_);
  for (const HeaderEdits::Set& field : response_headers) {
    const bool ours =
        IsDenialField(field.name) ||
        (spec_ != nullptr && std::ranges::find(spec_->headers, field.name,
                                               &HeaderEdits::Set::name) != spec_->headers.end());
    if (!ours) out << field.name << ": " << field.value << "\r\n";
  }
  if (spec_ == nullptr) return;
  for (const HeaderEdits::Set& field : spec_->headers) {
    out << field.name << ": " << field.value << "\r\n";
  }
  if (!spec_->link.empty()) out << "Link: <" << spec_->link << ">; rel=\"help\"\r\n";
}

void Denial::WriteBody(net::OutBuffer& out, const Request& request) const {
  if (spec_ == nullptr || !spec_->body) {
    WriteAnswerJson(out, answer_, status_);
    out << '\n';
    return;
  }
  BodyValues values{.retry_after = answer_.RetryAfter(jitter_),
                    .request_id = request.id,
                    .link = spec_->link,
                    .status = status_,
                    .title = DenialTitle(answer_),
                    .method = request.method,
                    .path = request.path};
  // Only the rule that denies: the numbers of another one would not explain the denial.
  if (answer_.shown != nullptr && answer_.shown == answer_.governing) {
    values.rule = answer_.shown->rule;
    if (IsCounted(*answer_.shown)) {
      values.limit = answer_.shown->limit;
      values.remaining = answer_.shown->remaining;
    }
  }
  spec_->body->Write(out, values);
}

std::string_view Denial::content_type() const noexcept {
  return spec_ != nullptr && spec_->body ? std::string_view(spec_->content_type)
                                         : "application/problem+json";
}

}  // namespace tidegate
