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

class Recorder : public http::basic_parser<true> {
 public:
  explicit Recorder(BeastRequest& request) : request_(request) {
    eager(true);
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(std::numeric_limits<std::uint64_t>::max());
  }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    request_.method = Copy(method);
    request_.target = Copy(target);
    request_.minor = version % 10;
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  // Trailers come through here as well.
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    if (!in_body_) request_.fields.emplace_back(Copy(name), Copy(value));
  }
  void on_header_impl(error_code&) override { in_body_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override {
    request_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    request_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  BeastRequest& request_;
  bool in_body_ = false;
};

}  // namespace

BeastRequest ReadWithBeast(std::string_view input) {
  BeastRequest request;
  Recorder parser(request);
  error_code error;
  // Once for the head and once for each stop in the body; no progress ends it.
  while (!parser.is_done()) {
    const std::string_view rest = input.substr(request.consumed);
    const std::size_t used = parser.put(boost::asio::buffer(rest.data(), rest.size()), error);
    request.consumed += used;
    if (error || used == 0) break;
  }
  request.complete = parser.is_done() && !error;
  request.error = error ? error.message() : "";
  if (parser.is_header_done()) request.keep_alive = parser.keep_alive();
  return request;
}

}  // namespace tidegate::fuzz
