// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as replies of a Redis, one after another. The result must not depend on how the
// input is split. Whatever text arrives as the reply to a batch, no call is finished twice, and
// every call is finished.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "store/fingerprint.hpp"
#include "store/redis/batch.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {
namespace {

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "redis_fuzz: %s\n", what);
  std::abort();
}

void Append(const Reply& reply, std::string& text) {
  text += static_cast<char>('a' + static_cast<int>(reply.type));
  text.append(reply.text).append(std::to_string(reply.integer)).append("(");
  for (const Reply& element : reply.elements) Append(element, text);
  text += ')';
}

std::string ReadInPieces(std::string_view bytes, std::size_t piece) {
  RespReader reader;
  std::string text;
  Reply reply;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.Feed(bytes.substr(at, piece));
    while (true) {
      const RespReader::Progress progress = reader.Next(reply);
      if (progress == RespReader::Progress::kMore) break;
      if (progress == RespReader::Progress::kGarbage) return text + "!";
      Append(reply, text);
    }
  }
  return text;
}

struct PendingCall : Call {
  explicit PendingCall(std::vector<Charge> of, std::uint64_t request)
      : own(std::move(of)), outcomes(own.size()) {
    charges = own;
    decisions = outcomes;
    record.request = {request, request};
  }
  std::vector<Charge> own;
  std::vector<Decision> outcomes;
  int answers = 0;
};

/// Uses `packed` as the reply to a batch with every algorithm, several charges, a count and a
/// refund.
void ReadAsBatch(std::string_view packed) {
  static const KeyNames names("tg:");
  static const Fingerprinter fingerprinter;
  static Batch batch(names, fingerprinter);
  static const auto of = [](Algorithm algorithm) {
    return Quota::Make({.algorithm = algorithm, .limit = 3}).value();
  };
  static const Quota bucket = of(Algorithm::kTokenBucket);
  static const Quota log = of(Algorithm::kSlidingLog);
  static const Quota gcra = of(Algorithm::kGcra);
  static const Quota leases = of(Algorithm::kConcurrency);
  batch.Clear();
  std::vector<PendingCall> all;
  all.reserve(6);
  all.emplace_back(std::vector<Charge>{{"a", "x", &bucket}}, 1);
  all.emplace_back(std::vector<Charge>{{"a", "x", &bucket}}, 1);
  all.emplace_back(std::vector<Charge>{{"l", "x", &log}, {"g", "x", &gcra, 1, Mode::kShadow}}, 2);
  all.emplace_back(std::vector<Charge>{{"c", "x", &leases, 1, Mode::kEnforce, "one"}}, 3);
  all.emplace_back(std::vector<Charge>{{"a", "x", &bucket}, {"l", "x", &log}}, 4);
  all.back().kind = Call::Kind::kRefund;
  all.back().refund.id = "id";
  all.emplace_back(std::vector<Charge>{{"g", "x", &gcra}}, 5);
  all.back().kind = Call::Kind::kDebit;
  for (PendingCall& call : all) (void)batch.Add(call);
  std::string command;
  batch.Write(command, Batch::Form::kSha, "sha", "");
  const auto summary =
      batch.Read(packed, [](Call& call) { ++static_cast<PendingCall&>(call).answers; });
  const bool good = summary.verdict == Batch::Summary::Verdict::kGood;
  batch.TakeAll([](Call& call) { ++static_cast<PendingCall&>(call).answers; });
  for (const PendingCall& call : all)
    Require(call.answers == 1, "a call has not exactly one answer");
  Require(!good || batch.empty(), "a good reply left a call without an answer");
}

}  // namespace
}  // namespace tidegate::redis

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidegate::redis;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size > 4096) return 0;
  const std::string whole = ReadInPieces(bytes, size + 1);
  for (const std::size_t piece : {1u, 3u, 7u}) {
    Require(ReadInPieces(bytes, piece) == whole, "the answer depends on how the input is cut");
  }
  (void)KindOf(bytes);
  ReadAsBatch(bytes);
  return 0;
}
