// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as responses of an upstream, one after another. The result must not depend on how
// the input is split; a body that is read in pieces must equal the result of the decoder in one
// piece; and Boost.Beast must read each accepted response as the same response. The splits come
// from a hash of the input, so that the corpus is plain HTTP.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "http_beast.hpp"
#include "net/http1_syntax.hpp"
#include "unit/net/http1_reader.hpp"
#include "unit/net/stream_reader.hpp"

namespace tidegate::net {
namespace {

/// Inputs up to this size are also read byte by byte; each step copies all bytes before it.
constexpr std::size_t kByteByByte = 512;

/// Limits that are so small that inputs of a fuzzer's size reach each of them.
constexpr HttpLimits kTight{.header_bytes = 120, .header_count = 4};

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "response_fuzz: %s\n", what);
  std::abort();
}

/// Returns ways to split the input: no split, some random ones, and one after every byte.
std::vector<std::vector<std::size_t>> Ways(std::size_t size, std::minstd_rand& random) {
  std::vector<std::vector<std::size_t>> ways(1);
  for (int i = 0; i < 3; ++i) {
    auto& cuts = ways.emplace_back(1 + random() % 4);
    for (std::size_t& cut : cuts) cut = random() % (size + 1);
    std::sort(cuts.begin(), cuts.end());
  }
  if (size <= kByteByByte) ways.push_back(EveryByte(size));
  return ways;
}

ResponseAnswer ReadHeadInAllWays(std::string_view input, AnswerTo to, const HttpLimits& limits,
                                 std::minstd_rand& random) {
  ResponseAnswer whole = ReadResponse(input, to, limits);
  for (const auto& cuts : Ways(input.size(), random)) {
    Require(ReadResponse(input, to, limits, cuts) == whole, "pieces of a head differ");
  }
  return whole;
}

StreamAnswer ReadBodyInAllWays(std::string_view input, const ResponseAnswer& head,
                               std::minstd_rand& random) {
  const auto read = [&](const std::vector<std::size_t>& cuts) {
    const auto reader = std::make_unique<BodyReader>();
    reader->Begin(head.body, head.content_length);
    return ReadStream(*reader, input, cuts);
  };
  StreamAnswer whole = read({});
  for (const auto& cuts : Ways(input.size(), random)) {
    Require(read(cuts) == whole, "pieces of a body differ");
  }
  return whole;
}

/// Checks the guarantees of the parser about every head that it accepts.
void CheckHead(const ResponseAnswer& head, const HttpLimits& limits, AnswerTo to) {
  Require(head.consumed <= limits.header_bytes, "header_bytes");
  Require(head.fields.size() <= limits.header_count, "header_count");
  Require(head.status >= 100 && head.status <= 999, "status");
  Require(http1::All(head.reason, http1::kText), "reason");
  Require(head.body != BodyFraming::kUntilClose || !head.keep_alive, "kept without an end");
  Require(to == AnswerTo::kOther || head.body == BodyFraming::kNone, "a body after HEAD");
  Require(!head.upgrade || head.status == 101, "upgrade");
  bool length = false;
  int codings = 0;
  for (const auto& [name, value] : head.fields) {
    Require(!name.empty() && http1::All(name, http1::kToken), "name");
    Require(http1::All(value, http1::kText), "value");
    Require(Trim(value).size() == value.size(), "trimmed");
    codings += EqualsIgnoreCase(name, "transfer-encoding") ? 1 : 0;
    if (!EqualsIgnoreCase(name, "content-length")) continue;
    length = true;
    Require(http1::ReadLengths(value) == head.content_length, "another length");
  }
  Require(codings + (length ? 1 : 0) <= 1, "framed twice");
}

/// Checks that the reader and the decoder agree, except that the reader rejects too many trailers,
/// which the decoder drops.
void CompareWithDecoder(std::string_view input, const StreamAnswer& stream) {
  const BodyAnswer whole = ReadChunked(input, HttpLimits{.body_bytes = SIZE_MAX});
  if (stream.parsed == Parsed::kRefused && whole.parsed != Parsed::kRefused) {
    Require(stream.why == "too many trailers", "refused by the reader alone");
    return;
  }
  Require(whole.parsed == stream.parsed, "the decoder sees another end");
  if (whole.parsed == Parsed::kRefused) {
    // If the trailers have two errors, the reader may find the first one and the decoder the
    // second.
    Require(whole.status == stream.status, "another refusal");
    return;
  }
  Require(whole.body == stream.body, "the decoder sees another body");
  if (whole.parsed == Parsed::kDone)
    Require(whole.raw == stream.size, "the decoder ends elsewhere");
}

/// Returns true if Beast may reject a response that Tidegate accepts: Beast requires the space
/// before a reason, and visible ASCII in the reason; it checks Proxy-Connection, which Tidegate
/// does not read, and framing fields in trailers, which Tidegate drops; and it rejects white space
/// at the end of a chunk size line.
bool MayDiffer(std::string_view response, const ResponseAnswer& head) {
  if (response.substr(12, 1) != " ") return true;
  if (head.body == BodyFraming::kChunked) {
    const std::string_view chunks = response.substr(head.consumed);
    for (const std::string_view name : {"connection", "content-length", "transfer-encoding"}) {
      for (std::size_t at = 0; at + name.size() <= chunks.size(); ++at) {
        if (EqualsIgnoreCase(chunks.substr(at, name.size()), name)) return true;
      }
    }
    if (chunks.find(" \r\n") != std::string_view::npos) return true;
    if (chunks.find("\t\r\n") != std::string_view::npos) return true;
  }
  for (const char c : head.reason) {
    if (c < 0x20 || c > 0x7E) return true;
  }
  for (const auto& [name, value] : head.fields) {
    if (EqualsIgnoreCase(name, "proxy-connection")) return true;
  }
  return false;
}

void CompareWithBeast(std::string_view response, const ResponseAnswer& head, AnswerTo to,
                      std::string_view body) {
  const auto beast = fuzz::ReadResponseWithBeast(
      response, to == AnswerTo::kHead                   ? fuzz::BeastBody::kNone
                : head.body == BodyFraming::kUntilClose ? fuzz::BeastBody::kUntilClose
                                                        : fuzz::BeastBody::kByFields);
  const bool may_differ = MayDiffer(response, head);
  if (!beast.complete) {
    if (may_differ) return;
    std::fprintf(stderr, "Beast: %s\n", beast.error.c_str());
  }
  Require(beast.complete, "accepted here, refused by Beast");
  Require(beast.consumed == response.size(), "another length");
  Require(beast.status == head.status, "another status");
  Require(beast.reason == head.reason, "another reason");
  Require(beast.minor == head.minor, "another version");
  Require(beast.fields == head.fields, "other fields");
  Require(beast.body == body, "another body");
  if (may_differ) return;  // Beast uses the fields that may differ for keep-alive as well.
  // RFC 9112, 9.3: `close` has priority. In HTTP/1.0 Beast prefers `keep-alive`. Tidegate closes
  // the connection of a 204 that announces a body.
  Require(head.keep_alive ? beast.keep_alive
                          : !beast.keep_alive || head.minor == 0 || head.status == 204,
          "another idea of keeping the connection");
}

/// Reads one response and returns its size in bytes; 0 if there is no complete response.
std::size_t ReadOne(std::string_view input, AnswerTo to, const HttpLimits& limits,
                    std::minstd_rand& random) {
  const ResponseAnswer head = ReadHeadInAllWays(input, to, limits, random);
  if (head.parsed == Parsed::kRefused) Require(!head.why.empty(), "why");
  if (head.parsed != Parsed::kDone) return 0;
  CheckHead(head, limits, to);
  const std::string_view rest = input.substr(head.consumed);
  const StreamAnswer body = ReadBodyInAllWays(rest, head, random);
  if (head.body == BodyFraming::kChunked) CompareWithDecoder(rest, body);
  std::size_t size = head.consumed + body.size;
  if (head.body == BodyFraming::kUntilClose) {
    Require(body.parsed == Parsed::kMore && body.body == rest, "until close");
    size = input.size();
  } else if (body.parsed != Parsed::kDone) {
    return 0;
  }
  CompareWithBeast(input.substr(0, size), head, to, body.body);
  return size;
}

}  // namespace
}  // namespace tidegate::net

namespace tidegate::net {
namespace {

/// Reads with bare LF accepted: the result must not depend on splits, and input that is accepted
/// without this option must give the same result.
void ReadWithBareLf(std::string_view input) {
  const auto read = [&](const std::vector<std::size_t>& cuts) {
    return ReadResponse(input, AnswerTo::kOther, {}, cuts, http1::LineEnd::kCrlfOrLf);
  };
  const ResponseAnswer head = read({});
  if (input.size() <= kByteByByte) {
    Require(read(EveryByte(input.size())) == head, "pieces of a head with LF differ");
  }
  const ResponseAnswer strict = ReadResponse(input);
  if (strict.parsed == Parsed::kDone) Require(strict == head, "another head with LF");
  if (head.parsed != Parsed::kDone || head.body != BodyFraming::kChunked) return;
  const std::string_view rest = input.substr(head.consumed);
  const auto body = [&](const std::vector<std::size_t>& cuts, http1::LineEnd line_end) {
    const auto reader = std::make_unique<BodyReader>();
    reader->Begin(BodyFraming::kChunked, 0, line_end);
    return ReadStream(*reader, rest, cuts);
  };
  const StreamAnswer whole = body({}, http1::LineEnd::kCrlfOrLf);
  if (rest.size() <= kByteByByte) {
    Require(body(EveryByte(rest.size()), http1::LineEnd::kCrlfOrLf) == whole,
            "pieces of a body with LF differ");
  }
  const StreamAnswer exact = body({}, http1::LineEnd::kCrlf);
  if (exact.parsed == Parsed::kDone) Require(exact == whole, "another body with LF");
}

}  // namespace
}  // namespace tidegate::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidegate::net;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::minstd_rand random(static_cast<unsigned>(std::hash<std::string_view>{}(input)));
  ReadWithBareLf(input);
  for (const HttpLimits& limits : {HttpLimits{}, kTight}) {
    for (const AnswerTo to : {AnswerTo::kOther, AnswerTo::kHead}) {
      std::string_view rest = input;
      for (int i = 0; i < 4 && !rest.empty(); ++i) {
        const std::size_t used = ReadOne(rest, to, limits, random);
        if (used == 0) break;
        rest.remove_prefix(used);
      }
    }
  }
  return 0;
}
