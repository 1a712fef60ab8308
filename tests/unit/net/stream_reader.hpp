// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"

namespace tidegate::net {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Result of a ResponseParser, copied so that nothing in it points into a buffer.
struct ResponseAnswer {
  Parsed parsed = Parsed::kMore;
  std::string why;
  std::size_t consumed = 0;
  int status = 0;
  int minor = -1;
  std::string reason;
  bool keep_alive = false;
  bool upgrade = false;
  BodyFraming body = BodyFraming::kNone;
  std::uint64_t content_length = 0;
  Fields fields;

  bool operator==(const ResponseAnswer&) const = default;
};

inline ResponseAnswer Describe(Parsed parsed, const ResponseParser& parser,
                               const ResponseHead& head) {
  ResponseAnswer answer;
  answer.parsed = parsed;
  if (parsed == Parsed::kRefused) answer.why = parser.reason();
  if (parsed != Parsed::kDone) return answer;
  answer.consumed = parser.consumed();
  answer.status = head.status;
  answer.minor = head.minor;
  answer.reason = head.reason;
  answer.keep_alive = head.keep_alive;
  answer.upgrade = head.upgrade;
  answer.body = head.body;
  answer.content_length = head.content_length;
  for (const HttpField& field : head.all()) answer.fields.emplace_back(field.name, field.value);
  return answer;
}

/// Parses `input` in pieces that end at `cuts` and at its end, and stops at the first result other
/// than kMore. Each piece comes in a new buffer of exactly the size that has arrived, and with a
/// new head, so that the address sanitizer finds stale views and reads beyond the end.
inline ResponseAnswer ReadResponse(std::string_view input, AnswerTo to = AnswerTo::kOther,
                                   const HttpLimits& limits = {},
                                   const std::vector<std::size_t>& cuts = {},
                                   http1::LineEnd line_end = http1::LineEnd::kCrlf) {
  ResponseParser parser(line_end);
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t size = i < cuts.size() ? cuts[i] : input.size();
    const auto buffer = std::make_unique<char[]>(size);
    input.copy(buffer.get(), size);
    const auto head = std::make_unique<ResponseHead>(std::min<std::size_t>(
        // Exactly this size, so that the address sanitizer finds accesses beyond it.
        limits.header_count, 1'000));
    const Parsed parsed = parser.Parse({buffer.get(), size}, limits, to, *head);
    if (parsed != Parsed::kMore) return Describe(parsed, parser, *head);
  }
  return {};
}

/// Result of a BodyReader.
struct StreamAnswer {
  Parsed parsed = Parsed::kMore;
  int status = 0;
  std::string why;
  std::string body;      ///< All data, joined; empty for a rejected body, because the cuts decide
                         ///< how much of it was read.
  std::size_t size = 0;  ///< Number of bytes of the input that belong to the body.
  Fields trailers;

  bool operator==(const StreamAnswer&) const = default;
};

/// Reads a body like ReadResponse() reads a head, and removes consumed bytes after each piece.
inline StreamAnswer ReadStream(BodyReader& reader, std::string_view input,
                               const std::vector<std::size_t>& cuts = {}) {
  StreamAnswer answer;
  std::size_t eaten = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t size = (i < cuts.size() ? cuts[i] : input.size()) - eaten;
    const auto buffer = std::make_unique<char[]>(size);
    input.substr(eaten).copy(buffer.get(), size);
    answer.parsed = reader.Read({buffer.get(), size});
    if (answer.parsed == Parsed::kRefused) {
      return {
          answer.parsed, reader.refusal().status, std::string(reader.refusal().reason), {}, 0, {}};
    }
    answer.body += reader.data();
    eaten += reader.eaten();
    if (answer.parsed != Parsed::kDone) continue;
    answer.size = eaten;
    for (const HttpField& field : reader.trailers()) {
      answer.trailers.emplace_back(field.name, field.value);
    }
    return answer;
  }
  return answer;
}

inline StreamAnswer ReadChunkedStream(std::string_view input,
                                      const std::vector<std::size_t>& cuts = {}) {
  const auto reader = std::make_unique<BodyReader>();
  reader->Begin(BodyFraming::kChunked, 0);
  return ReadStream(*reader, input, cuts);
}

}  // namespace tidegate::net
