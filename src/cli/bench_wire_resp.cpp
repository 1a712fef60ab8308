// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_wire.hpp"
#include "cli/shown_text.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::cli {
namespace {

using redis::Reply;
using redis::RespReader;

void AddText(std::string_view text, std::string& out) {
  out.append("$").append(std::to_string(text.size())).append("\r\n").append(text).append("\r\n");
}

class RespWire final : public BenchWire {
 public:
  RespWire(std::string_view rule, std::string_view token) : token_(token) {
    head_ = "*3\r\n";
    AddText("TG.DECIDE", head_);
    AddText(rule, head_);
  }

  void AddGreeting(std::string& out) override {
    if (token_.empty()) return;
    out += "*2\r\n";
    AddText("AUTH", out);
    AddText(token_, out);
    greeting_ = true;
  }
  void AddQuestion(std::string_view identity, std::string& out) override {
    out += head_;
    AddText(identity, out);
  }
  void Feed(std::string_view bytes) override { reader_.Feed(bytes); }
  void Reset() override {
    reader_.Clear();
    greeting_ = false;
  }

  Progress Next(BenchAnswer& answer) override {
    RespReader::Progress progress = reader_.Next(reply_);
    if (progress == RespReader::Progress::kReply && greeting_ && !reply_.is(Reply::Type::kError)) {
      greeting_ = false;
      progress = reader_.Next(reply_);
    }
    if (progress == RespReader::Progress::kMore) return Progress::kMore;
    if (progress == RespReader::Progress::kGarbage) return Progress::kGarbage;
    answer = {};
    if (reply_.is(Reply::Type::kError)) {
      // The one error that is a decision: the store cannot be reached, and the rule is closed.
      if (reply_.text.starts_with("UNAVAILABLE")) {
        answer.decided_by = "closed";
      } else {
        answer.mistake = Shown(reply_.text);
      }
      return Progress::kAnswer;
    }
    // limited, limit, remaining, retry, reset, decided_by, reason
    if (!reply_.is(Reply::Type::kArray) || reply_.elements.size() != 7) return Progress::kGarbage;
    answer.allowed = reply_.elements[0].integer == 0;
    answer.decided_by = reply_.elements[5].text;
    return Progress::kAnswer;
  }

 private:
  std::string token_;
  std::string head_;
  RespReader reader_;
  Reply reply_;
  bool greeting_ = false;
};

}  // namespace

std::unique_ptr<BenchWire> MakeRespWire(std::string_view rule, std::string_view token) {
  return std::make_unique<RespWire>(rule, token);
}

}  // namespace tidegate::cli
