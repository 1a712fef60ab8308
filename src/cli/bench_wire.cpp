// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "cli/bench_load.hpp"
#include "cli/console.hpp"
#include "cli/response.hpp"
#include "net/http1_parser.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/resp_reader.hpp"

namespace tidegate::cli {

namespace {

namespace json = boost::json;

class HttpWire final : public BenchWire {
 public:
  HttpWire(const ServerAddress& address, std::string_view rule, std::string_view token) {
    head_ = RequestHead(address, "POST", "/v1/decide", token) +
            "Content-Type: application/json\r\nContent-Length: ";
    body_ = "{\"rule\":" + json::serialize(json::value(rule)) + ",\"identity\":\"";
  }

  void AddGreeting(std::string&) override {}

  void AddRequest(std::string_view identity, std::string& out) override {
    // The identities of bench need no escapes.
    out += head_;
    out += std::to_string(body_.size() + identity.size() + 2);
    out.append("\r\n\r\n").append(body_).append(identity).append("\"}");
  }

  void Feed(std::string_view bytes) override {
    buffer_.erase(0, taken_);
    taken_ = 0;
    buffer_ += bytes;
  }

  Progress Next(BenchResponse& response) override {
    const std::string_view input = std::string_view(buffer_).substr(taken_);
    if (input.empty()) return Progress::kMore;
    parser_.Reset();
    const net::Parsed parsed = parser_.Parse(input, {}, net::AnswerTo::kOther, *response_);
    if (parsed == net::Parsed::kMore) return Progress::kMore;
    if (parsed == net::Parsed::kRefused) return Progress::kMalformed;
    if (response_->body != net::BodyFraming::kLength || response_->content_length > (1u << 20)) {
      return Progress::kMalformed;
    }
    const std::size_t size = parser_.consumed() + response_->content_length;
    if (input.size() < size) return Progress::kMore;
    taken_ += size;
    Read(input.substr(parser_.consumed(), response_->content_length), response);
    return Progress::kResponse;
  }

  void Reset() override {
    buffer_.clear();
    taken_ = 0;
  }

 private:
  void Read(std::string_view body, BenchResponse& response) const {
    constexpr std::string_view kDecidedBy = "\"decided_by\":\"";
    response = {.status = response_->status, .last = !response_->keep_alive};
    response.allowed = response.status == 200;
    // The governing decision's `allowed` comes first in the body, before those of the rules.
    // Parsing the whole body would take longer than the server needs to respond.
    if (body.find("\"allowed\":") == std::string_view::npos) {
      boost::system::error_code error;
      const json::value problem = json::parse(body, error);
      response.fatal_error = error ? "" : Shown(JsonView(problem).Text("detail"));
      if (response.fatal_error.empty()) {
        response.fatal_error = "the server responded with status " +
                               std::to_string(response.status) + " and no decision";
      }
      if (response.status == 404 && (error || !JsonView(problem).Has("pointer"))) {
        response.fatal_error += "; is this the port of the API? Name another with --server";
      }
      return;
    }
    const std::size_t at = body.find(kDecidedBy);
    if (at == std::string_view::npos) return;
    const std::string_view rest = body.substr(at + kDecidedBy.size());
    response.decided_by = rest.substr(0, rest.find('"'));
  }

  std::string head_;
  std::string body_;
  std::string buffer_;
  std::size_t taken_ = 0;
  net::ResponseParser parser_;
  std::unique_ptr<net::ResponseHead> response_ = std::make_unique<net::ResponseHead>();
};

using redis::Reply;
using redis::RespReader;

class RespWire final : public BenchWire {
 public:
  RespWire(std::string_view rule, std::string_view token) : rule_(rule), token_(token) {}

  void AddGreeting(std::string& out) override {
    awaits_auth_ = !token_.empty();
    if (awaits_auth_) redis::AppendCommand(out, {"AUTH", token_});
  }
  void AddRequest(std::string_view identity, std::string& out) override {
    redis::AppendCommand(out, {"TG.DECIDE", rule_, identity});
  }
  void Feed(std::string_view bytes) override { reader_.Feed(bytes); }
  void Reset() override {
    reader_.Clear();
    awaits_auth_ = false;
  }

  Progress Next(BenchResponse& response) override {
    RespReader::Progress progress = reader_.Next(reply_);
    if (progress == RespReader::Progress::kReply && awaits_auth_ &&
        !reply_.is(Reply::Type::kError)) {
      awaits_auth_ = false;
      progress = reader_.Next(reply_);
    }
    if (progress == RespReader::Progress::kMore) return Progress::kMore;
    if (progress == RespReader::Progress::kGarbage) return Progress::kMalformed;
    response = {};
    if (reply_.is(Reply::Type::kError)) {
      // The only error that is a decision: the store did not answer, and the policy is `closed`.
      if (reply_.text.starts_with("UNAVAILABLE")) {
        response.decided_by = "closed";
      } else {
        response.fatal_error = Shown(reply_.text);
      }
      return Progress::kResponse;
    }
    // The elements are: limited, limit, remaining, retry, reset, decided_by, reason.
    if (!reply_.is(Reply::Type::kArray) || reply_.elements.size() != 7) return Progress::kMalformed;
    response.allowed = reply_.elements[0].integer == 0;
    response.decided_by = reply_.elements[5].text;
    return Progress::kResponse;
  }

 private:
  std::string rule_;
  std::string token_;
  RespReader reader_;
  Reply reply_;
  bool awaits_auth_ = false;
};

}  // namespace

std::unique_ptr<BenchWire> MakeHttpWire(const ServerAddress& address, std::string_view rule,
                                        std::string_view token) {
  return std::make_unique<HttpWire>(address, rule, token);
}

std::unique_ptr<BenchWire> MakeRespWire(std::string_view rule, std::string_view token) {
  return std::make_unique<RespWire>(rule, token);
}

}  // namespace tidegate::cli
