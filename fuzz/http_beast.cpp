// SPDX-License-Identifier: Apache-2.0
#include "http_beast.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>

namespace tidegate::fuzz {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

std::string Copy(string_view text) { return {text.data(), text.size()}; }

template <bool kRequest>
class Recorder : public http::basic_parser<kRequest> {
 public:
  explicit Recorder(BeastMessage& message) : message_(message) {
    this->eager(true);
    this->header_limit(std::numeric_limits<std::uint32_t>::max());
    this->body_limit(std::numeric_limits<std::uint64_t>::max());
  }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    message_.method = Copy(method);
    message_.target = Copy(target);
    message_.minor = version % 10;
  }
  void on_response_impl(int status, string_view reason, int version, error_code&) override {
    message_.status = status;
    message_.reason = Copy(reason);
    message_.minor = version % 10;
  }
  // Beast calls this function for trailers as well.
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    if (!in_body_) message_.fields.emplace_back(Copy(name), Copy(value));
  }
  void on_header_impl(error_code&) override { in_body_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override {
    message_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    message_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  BeastMessage& message_;
  bool in_body_ = false;
};

/// Calls the parser once for the head and once for each stop in the body; stops when it makes no
/// progress.
template <bool kRequest>
error_code Feed(Recorder<kRequest>& parser, std::string_view input, BeastMessage& message) {
  error_code error;
  while (!parser.is_done()) {
    const std::string_view rest = input.substr(message.consumed);
    const std::size_t used = parser.put(boost::asio::buffer(rest.data(), rest.size()), error);
    message.consumed += used;
    if (error || used == 0) break;
  }
  return error;
}

template <bool kRequest>
void Conclude(const Recorder<kRequest>& parser, const error_code& error, BeastMessage& message) {
  message.complete = parser.is_done() && !error;
  message.error = error ? error.message() : "";
  if (parser.is_header_done()) message.keep_alive = parser.keep_alive();
}

}  // namespace

BeastMessage ReadWithBeast(std::string_view input) {
  BeastMessage message;
  Recorder<true> parser(message);
  const error_code error = Feed(parser, input, message);
  Conclude(parser, error, message);
  return message;
}

BeastMessage ReadResponseWithBeast(std::string_view input, BeastBody body) {
  BeastMessage message;
  Recorder<false> parser(message);
  if (body == BeastBody::kNone) parser.skip(true);
  error_code error = Feed(parser, input, message);
  if (body == BeastBody::kUntilClose && (!error || error == http::error::need_more)) {
    error = {};
    parser.put_eof(error);
  }
  Conclude(parser, error, message);
  return message;
}

}  // namespace tidegate::fuzz
