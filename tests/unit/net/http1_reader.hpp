// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http1_body.hpp"
#include "net/http1_parser.hpp"

namespace tidegate::net {

/// Result of a HeadParser, copied so that nothing in it points into a buffer.
struct HeadAnswer {
  Parsed parsed = Parsed::kMore;
  int status = 0;
  std::string reason;
  std::size_t consumed = 0;
  std::string method, target, host, path, query;
  int minor = -1;
  bool keep_alive = false;
  bool expects_continue = false;
  bool unknown_expect = false;
  bool upgrade = false;
  BodyFraming body = BodyFraming::kNone;
  std::uint64_t content_length = 0;
  std::vector<std::pair<std::string, std::string>> fields;

  bool operator==(const HeadAnswer&) const = default;
};

inline HeadAnswer Describe(Parsed parsed, const HeadParser& parser, const HttpHead& head) {
  HeadAnswer answer;
  answer.parsed = parsed;
  if (parsed == Parsed::kRefused) {
    answer.status = parser.refusal().status;
    answer.reason = parser.refusal().reason;
  }
  if (parsed != Parsed::kDone) return answer;
  answer.consumed = parser.consumed();
  answer.method = head.method;
  answer.target = head.target;
  answer.host = head.host;
  answer.path = head.path;
  answer.query = head.query;
  answer.minor = head.minor;
  answer.keep_alive = head.keep_alive;
  answer.expects_continue = head.expects_continue;
  answer.unknown_expect = head.unknown_expect;
  answer.upgrade = head.upgrade;
  answer.body = head.body;
  answer.content_length = head.content_length;
  for (const HttpField& field : head.all()) answer.fields.emplace_back(field.name, field.value);
  return answer;
}

/// Parses `input` in pieces that end at `cuts` and at its end, and stops at the first result other
/// than kMore. Each piece comes in a new buffer of exactly the size that has arrived, and with a
/// new head, so that the address sanitizer finds stale views and reads beyond the end.
inline HeadAnswer ReadHead(std::string_view input, const HttpLimits& limits = {},
                           const std::vector<std::size_t>& cuts = {}) {
  HeadParser parser;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t size = i < cuts.size() ? cuts[i] : input.size();
    const auto buffer = std::make_unique<char[]>(size);
    input.copy(buffer.get(), size);
    const auto head = std::make_unique<HttpHead>();
    const Parsed parsed = parser.Parse({buffer.get(), size}, limits, *head);
    if (parsed != Parsed::kMore) return Describe(parsed, parser, *head);
  }
  return {};
}

struct BodyAnswer {
  Parsed parsed = Parsed::kMore;
  int status = 0;
  std::string reason;
  std::string body;
  std::size_t raw = 0;

  bool operator==(const BodyAnswer&) const = default;
};

/// Like ReadHead() for a chunked body. Consumed bytes are overwritten, since the decoder must not
/// read them again.
inline BodyAnswer ReadChunked(std::string_view input, const HttpLimits& limits = {},
                              const std::vector<std::size_t>& cuts = {}) {
  ChunkedDecoder decoder;
  std::string before;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t size = i < cuts.size() ? cuts[i] : input.size();
    const auto buffer = std::make_unique<char[]>(size);
    input.copy(buffer.get(), size);
    before.copy(buffer.get(), decoder.decoded());
    for (std::size_t k = decoder.decoded(); k < decoder.raw(); ++k) buffer[k] = '~';
    const Parsed parsed = decoder.Decode({buffer.get(), size}, limits);
    before.assign(buffer.get(), decoder.decoded());
    if (parsed == Parsed::kRefused) {
      return {parsed, decoder.refusal().status, std::string(decoder.refusal().reason), {}, 0};
    }
    if (parsed == Parsed::kDone) return {parsed, 0, {}, before, decoder.raw()};
  }
  return {Parsed::kMore, 0, {}, before, 0};
}

/// Like ReadChunked(), but consumed bytes are removed between the pieces, as a connection does.
inline BodyAnswer ReadCompacted(std::string_view input, const HttpLimits& limits = {},
                                const std::vector<std::size_t>& cuts = {}) {
  ChunkedDecoder decoder;
  std::size_t taken = 0;  // Number of bytes of the input that have been removed.
  std::string kept;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t size = i < cuts.size() ? cuts[i] : input.size();
    kept += input.substr(kept.size() + taken, size - kept.size() - taken);
    // The buffer has exactly this size, so that the address sanitizer finds reads beyond its end.
    const auto buffer = std::make_unique<char[]>(kept.size());
    kept.copy(buffer.get(), kept.size());
    const Parsed parsed = decoder.Decode({buffer.get(), kept.size()}, limits);
    kept.assign(buffer.get(), kept.size());
    if (parsed == Parsed::kRefused) {
      return {parsed, decoder.refusal().status, std::string(decoder.refusal().reason), {}, 0};
    }
    const std::size_t eaten = decoder.raw() - decoder.decoded();
    if (parsed == Parsed::kDone) {
      return {parsed, 0, {}, kept.substr(0, decoder.decoded()), decoder.raw() + taken};
    }
    kept.erase(decoder.decoded(), eaten);
    taken += eaten;
    decoder.Compacted();
  }
  return {Parsed::kMore, 0, {}, kept.substr(0, decoder.decoded()), 0};
}

/// Returns the cuts 1, 2, ... size - 1, which split a text into single bytes.
inline std::vector<std::size_t> EveryByte(std::size_t size) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

}  // namespace tidegate::net
