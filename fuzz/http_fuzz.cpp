// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as requests on one connection, one after another. The result must not depend on
// how the input is split, and Boost.Beast must read each accepted request as the same request. The
// splits come from a hash of the input, so that the corpus is plain HTTP.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "http_beast.hpp"
#include "net/http1_syntax.hpp"
#include "unit/net/http1_reader.hpp"

namespace tidegate::net {
namespace {

/// Inputs up to this size are also read byte by byte; each step copies all bytes before it.
constexpr std::size_t kByteByByte = 512;

/// Limits that are so small that inputs of a fuzzer's size reach each of them.
constexpr HttpLimits kTight{.header_bytes = 200,
                            .header_count = 6,
                            .target_bytes = 40,
                            .body_bytes = 30,
                            .trailer_bytes = 24};

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "http_fuzz: %s\n", what);
  std::abort();
}

std::vector<std::size_t> RandomCuts(std::size_t size, std::minstd_rand& random) {
  std::vector<std::size_t> cuts(1 + random() % 4);
  for (std::size_t& cut : cuts) cut = random() % (size + 1);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

template <auto kRead>
auto ReadInAllWays(std::string_view input, const HttpLimits& limits, std::minstd_rand& random) {
  auto whole = kRead(input, limits, {});
  for (int i = 0; i < 3; ++i) {
    Require(kRead(input, limits, RandomCuts(input.size(), random)) == whole, "pieces differ");
  }
  if (input.size() <= kByteByByte) {
    Require(kRead(input, limits, EveryByte(input.size())) == whole, "byte by byte differs");
  }
  return whole;
}

/// Checks the guarantees of the parser about every head that it accepts.
void CheckHead(const HeadAnswer& head, const HttpLimits& limits) {
  Require(head.consumed <= limits.header_bytes, "header_bytes");
  Require(head.fields.size() <= limits.header_count, "header_count");
  Require(head.target.size() <= limits.target_bytes, "target_bytes");
  Require(head.content_length <= limits.body_bytes, "body_bytes");
  Require(!head.method.empty() && http1::All(head.method, http1::kToken), "method");
  Require(!head.target.empty() && http1::All(head.target, http1::kTarget), "target");
  Require(head.minor == 0 || !head.host.empty(), "no host");
  Require(head.path.starts_with('/') || head.path == "*" || head.method == "CONNECT", "path");
  for (const auto& [name, value] : head.fields) {
    Require(!name.empty() && http1::All(name, http1::kToken), "name");
    Require(http1::All(value, http1::kText), "value");
    Require(Trim(value).size() == value.size(), "trimmed");
  }
}

bool HasField(std::string_view text, std::string_view lower) {
  for (std::size_t at = 0; at + lower.size() <= text.size(); ++at) {
    if (EqualsIgnoreCase(text.substr(at, lower.size()), lower)) return true;
  }
  return false;
}

/// Returns true if Beast may reject a request that Tidegate accepts: Beast checks Proxy-Connection,
/// which Tidegate does not read, and framing fields in trailers, which Tidegate drops; and it
/// rejects white space at the end of a chunk size line.
bool MayDiffer(const HeadAnswer& head, std::string_view chunks) {
  for (const auto& [name, value] : head.fields) {
    if (EqualsIgnoreCase(name, "proxy-connection")) return true;
  }
  return HasField(chunks, "connection") || HasField(chunks, "content-length") ||
         HasField(chunks, "transfer-encoding") || chunks.find(" \r\n") != std::string_view::npos ||
         chunks.find("\t\r\n") != std::string_view::npos;
}

void CompareWithBeast(std::string_view request, const HeadAnswer& head, std::string_view body) {
  // RFC 9112, 2.2: servers skip empty lines before a request; Beast does not.
  std::size_t skipped = 0;
  while (request.substr(skipped).starts_with("\r\n")) skipped += 2;
  const auto beast = fuzz::ReadWithBeast(request.substr(skipped));
  const bool may_differ =
      MayDiffer(head, head.body == BodyFraming::kChunked ? request.substr(head.consumed) : "");
  if (!beast.complete) {
    if (may_differ) return;
    std::fprintf(stderr, "Beast: %s\n", beast.error.c_str());
  }
  Require(beast.complete, "accepted here, refused by Beast");
  Require(beast.consumed + skipped == request.size(), "another length");
  Require(beast.method == head.method, "another method");
  Require(beast.target == head.target, "another target");
  Require(beast.minor == head.minor, "another version");
  Require(beast.fields == head.fields, "other fields");
  Require(beast.body == body, "another body");
  if (may_differ) return;  // Beast uses the fields that may differ for keep-alive as well.
  // RFC 9112, 9.3: `close` has priority. In HTTP/1.0 Beast prefers `keep-alive`.
  Require(head.keep_alive ? beast.keep_alive : !beast.keep_alive || head.minor == 0,
          "another idea of keeping the connection");
}

/// Reads one request and returns its size in bytes; 0 if there is no complete request.
std::size_t ReadRequest(std::string_view input, const HttpLimits& limits,
                        std::minstd_rand& random) {
  const HeadAnswer head = ReadInAllWays<ReadHead>(input, limits, random);
  if (head.parsed == Parsed::kRefused) Require(head.status >= 400 && !head.reason.empty(), "why");
  if (head.parsed != Parsed::kDone) return 0;
  CheckHead(head, limits);
  const std::string_view rest = input.substr(head.consumed);
  std::size_t size = head.consumed;
  std::string body;
  if (head.body == BodyFraming::kChunked) {
    const BodyAnswer answer = ReadInAllWays<ReadChunked>(rest, limits, random);
    Require(ReadInAllWays<ReadCompacted>(rest, limits, random) == answer, "compacting differs");
    if (answer.parsed != Parsed::kDone) return 0;
    Require(answer.body.size() <= limits.body_bytes, "body_bytes");
    Require(answer.raw <= rest.size() && answer.raw > answer.body.size(), "raw");
    body = answer.body;
    size += answer.raw;
  } else {
    if (rest.size() < head.content_length) return 0;
    body = rest.substr(0, head.content_length);
    size += head.content_length;
  }
  CompareWithBeast(input.substr(0, size), head, body);
  return size;
}

}  // namespace
}  // namespace tidegate::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidegate::net;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const HttpLimits& limits : {HttpLimits{}, kTight}) {
    std::minstd_rand random(static_cast<unsigned>(std::hash<std::string_view>{}(input)));
    std::string_view rest = input;
    for (int i = 0; i < 4 && !rest.empty(); ++i) {
      const std::size_t used = ReadRequest(rest, limits, random);
      if (used == 0) break;
      rest.remove_prefix(used);
    }
  }
  return 0;
}
