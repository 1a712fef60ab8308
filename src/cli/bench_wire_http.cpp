// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>

#include "cli/bench_wire.hpp"
#include "cli/members.hpp"
#include "cli/shown_text.hpp"
#include "net/http1_response.hpp"

namespace tidegate::cli {
namespace {

namespace json = boost::json;

class HttpWire final : public BenchWire {
 public:
  HttpWire(const ServerAddress& address, std::string_view rule, std::string_view token) {
    head_ = "POST /v1/decide HTTP/1.1\r\nHost: " + address.Text() +
            "\r\nContent-Type: application/json\r\n";
    if (!token.empty()) head_.append("Authorization: Bearer ").append(token).append("\r\n");
    head_ += "Content-Length: ";
    body_ = "{\"rule\":" + json::serialize(json::value(rule)) + ",\"identity\":\"";
  }

  void AddGreeting(std::string&) override {}

  void AddQuestion(std::string_view identity, std::string& out) override {
    // An identity of ours needs no escapes.
    out += head_;
    out += std::to_string(body_.size() + identity.size() + 2);
    out.append("\r\n\r\n").append(body_).append(identity).append("\"}");
  }

  void Feed(std::string_view bytes) override {
    buffer_.erase(0, taken_);
    taken_ = 0;
    buffer_ += bytes;
  }

  Progress Next(BenchAnswer& answer) override {
    const std::string_view input = std::string_view(buffer_).substr(taken_);
    if (input.empty()) return Progress::kMore;
    parser_.Reset();
    switch (parser_.Parse(input, {}, net::AnswerTo::kOther, *response_)) {
      case net::Parsed::kMore:
        return Progress::kMore;
      case net::Parsed::kRefused:
        return Progress::kGarbage;
      case net::Parsed::kDone:
        break;
    }
    if (response_->body != net::ResponseBody::kLength || response_->content_length > (1u << 20)) {
      return Progress::kGarbage;
    }
    const std::size_t size = parser_.consumed() + response_->content_length;
    if (input.size() < size) return Progress::kMore;
    taken_ += size;
    Read(input.substr(parser_.consumed(), response_->content_length), answer);
    return Progress::kAnswer;
  }

  void Reset() override {
    buffer_.clear();
    taken_ = 0;
  }

 private:
  void Read(std::string_view body, BenchAnswer& answer) const {
    constexpr std::string_view kDecidedBy = "\"decided_by\":\"";
    answer = {.status = response_->status, .last = !response_->keep_alive};
    answer.allowed = answer.status == 200;
    // The governing one stands before those of the rules. Parsing it all would cost the load more
    // than the answer cost the server.
    if (body.find("\"allowed\":") == std::string_view::npos) {
      boost::system::error_code error;
      const json::value problem = json::parse(body, error);
      answer.mistake = error ? "" : Shown(Members(problem).Text("detail"));
      if (answer.mistake.empty()) {
        answer.mistake =
            "the server answers with status " + std::to_string(answer.status) + " and no decision";
      }
      if (answer.status == 404 && (error || !Members(problem).Has("pointer"))) {
        answer.mistake += "; is this the port of the API? Name another with --server";
      }
      return;
    }
    const std::size_t at = body.find(kDecidedBy);
    if (at == std::string_view::npos) return;
    const std::string_view rest = body.substr(at + kDecidedBy.size());
    answer.decided_by = rest.substr(0, rest.find('"'));
  }

  std::string head_;
  std::string body_;
  std::string buffer_;
  std::size_t taken_ = 0;
  net::ResponseParser parser_;
  std::unique_ptr<net::ResponseHead> response_ = std::make_unique<net::ResponseHead>();
};

}  // namespace

std::unique_ptr<BenchWire> MakeHttpWire(const ServerAddress& address, std::string_view rule,
                                        std::string_view token) {
  return std::make_unique<HttpWire>(address, rule, token);
}

}  // namespace tidegate::cli
