// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "decision/answer.hpp"
#include "net/out_buffer.hpp"
#include "rules/config.hpp"
#include "rules/denial_spec.hpp"
#include "rules/header_edits.hpp"

namespace tidegate {

/// A denial as a client of the gateway, or of a proxy that asks /v1/auth, sees it: the problem
/// document, or the response that a `denial` section of the configuration describes.
///
/// Points at the answer and at the snapshot, which must outlive it.
class Denial {
 public:
  /// What the answer does not say about the denied request.
  struct Request {
    std::string_view id;
    std::string_view method;
    std::string_view path;
  };

  /// Uses the first `denial` of: the rule that denies, `route` (nullptr: none), `responses`.
  /// `jitter` is that of Answer::RetryAfter. REQUIRES: `answer` is a denial.
  Denial(const Answer& answer, const std::optional<DenialSpec>* route,
         const Config::Responses& responses, Micros jitter);

  /// The status to send. A configured status replaces 429 only: 403 and 503 have other causes.
  [[nodiscard]] int status() const noexcept { return status_; }

  /// Writes all header fields of the denial but those that every response has. Fields of
  /// `response_headers` are added unless the denial has a field of that name itself.
  void WriteFields(net::OutBuffer& out, std::span<const HeaderEdits::Set> response_headers) const;
  void WriteBody(net::OutBuffer& out, const Request& request) const;
  [[nodiscard]] std::string_view content_type() const noexcept;

 private:
  const Answer& answer_;
  const Config::Responses& responses_;
  const DenialSpec* spec_ = nullptr;  ///< nullptr: the problem document.
  Micros jitter_;
  int status_;
};

}  // namespace tidegate
