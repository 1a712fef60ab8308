// SPDX-License-Identifier: Apache-2.0
// Compares the parsing of a request's head by Tidegate and by Boost.Beast's basic_parser. Both
// store views of the method, the target and the fields in an array, and nothing else.
#include <benchmark/benchmark.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <memory>
#include <string_view>

#include "net/http1_parser.hpp"

namespace tidegate::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

/// A request with 6 fields and 192 bytes.
constexpr std::string_view kCurlPost =
    "POST /v1/check HTTP/1.1\r\n"
    "Host: limits.example.internal:8080\r\n"
    "User-Agent: curl/7.88.1\r\n"
    "Accept: */*\r\n"
    "Content-Type: application/json\r\n"
    "X-Request-Id: 0f8fad5b-d9cb-469f-a165\r\n"
    "Content-Length: 63\r\n"
    "\r\n";

/// A request with 12 fields and 625 bytes.
constexpr std::string_view kBrowserGet =
    "GET /products/4711/reviews?page=2&sort=newest HTTP/1.1\r\n"
    "Host: www.example.org\r\n"
    "Connection: keep-alive\r\n"
    "Cache-Control: max-age=0\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/120.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
    "\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Referer: https://www.example.org/products/4711\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=6fa459eaee8a3ca4894edb77e160355e; theme=dark; consent=1\r\n"
    "\r\n";

class BeastParser : public http::basic_parser<true> {
 public:
  struct Head {
    string_view method, target;
    std::size_t count = 0;
    std::array<std::pair<string_view, string_view>, HttpHead::kMaxFields> fields;
  };
  explicit BeastParser(Head& head) : head_(head) { head_.count = 0; }

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int,
                       error_code&) override {
    head_.method = method;
    head_.target = target;
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    head_.fields[head_.count++] = {name, value};
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  Head& head_;
};

void Finish(benchmark::State& state, std::string_view input, std::size_t fields) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(input.size()));
  state.counters["bytes"] = static_cast<double>(input.size());
  state.counters["fields"] = static_cast<double>(fields);
}

void Tidegate(benchmark::State& state, std::string_view input) {
  const auto head = std::make_unique<HttpHead>();
  const HttpLimits limits;
  HeadParser parser;
  for (auto _ : state) {
    benchmark::DoNotOptimize(input);
    parser.Reset();
    if (parser.Parse(input, limits, *head) != Parsed::kDone) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(head->field_count);
    benchmark::ClobberMemory();
  }
  Finish(state, input, head->field_count);
}

/// Parses the input in two halves, as when it arrives in two TCP segments.
void TidegateInHalves(benchmark::State& state, std::string_view input) {
  const auto head = std::make_unique<HttpHead>();
  const HttpLimits limits;
  HeadParser parser;
  for (auto _ : state) {
    benchmark::DoNotOptimize(input);
    parser.Reset();
    benchmark::DoNotOptimize(parser.Parse(input.substr(0, input.size() / 2), limits, *head));
    if (parser.Parse(input, limits, *head) != Parsed::kDone) return state.SkipWithError("refused");
    benchmark::ClobberMemory();
  }
  Finish(state, input, head->field_count);
}

void Beast(benchmark::State& state, std::string_view input) {
  const auto head = std::make_unique<BeastParser::Head>();
  for (auto _ : state) {
    benchmark::DoNotOptimize(input);
    BeastParser parser(*head);
    error_code error;
    parser.put(boost::asio::buffer(input.data(), input.size()), error);
    if (error || !parser.is_header_done()) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(head->count);
    benchmark::ClobberMemory();
  }
  Finish(state, input, head->count);
}

BENCHMARK_CAPTURE(Tidegate, curl_post, kCurlPost);
BENCHMARK_CAPTURE(Beast, curl_post, kCurlPost);
BENCHMARK_CAPTURE(Tidegate, browser_get, kBrowserGet);
BENCHMARK_CAPTURE(Beast, browser_get, kBrowserGet);
BENCHMARK_CAPTURE(TidegateInHalves, curl_post, kCurlPost);
BENCHMARK_CAPTURE(TidegateInHalves, browser_get, kBrowserGet);

}  // namespace
}  // namespace tidegate::net

BENCHMARK_MAIN();
