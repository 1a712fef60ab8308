// SPDX-License-Identifier: Apache-2.0
#include "cli/decide.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <cstring>
#include <ostream>

#include "cli/exit.hpp"
#include "net/endpoint.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;

/// `http://127.0.0.1:8081/` is as good as `127.0.0.1:8081`.
std::string AddressOf(std::string server) {
  if (server.starts_with("http://")) server.erase(0, 7);
  while (server.ends_with('/')) server.pop_back();
  return server;
}

std::string RequestText(const DecideOptions& options) {
  json::object question{{"rule", options.rule}, {"identity", options.identity}};
  if (options.cost != 0) question["cost"] = options.cost;
  const std::string body = json::serialize(question);
  return std::string("POST ") + (options.peek ? "/v1/peek" : "/v1/decide") +
         " HTTP/1.1\r\nHost: " + AddressOf(options.server) +
         "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Sends `request` and reads until the server closes. An Error says what did not work.
Result<std::string> Exchange(const std::string& address, const std::string& request,
                             Micros timeout) {
  const auto fail = [&](const std::string& why) {
    return std::unexpected(Error{ErrorCode::kNetwork, address + ": " + why});
  };
  const auto endpoint = net::Endpoint::Parse(address);
  if (!endpoint) return std::unexpected(endpoint.error());
  asio::ip::tcp::endpoint target;
  std::memcpy(target.data(), endpoint->address(), endpoint->size());
  asio::io_context context;
  asio::ip::tcp::socket socket(context);
  std::string answer;
  error_code failed;
  socket.async_connect(target, [&](const error_code& error) {
    failed = error;
    if (failed) return;
    asio::async_write(socket, asio::buffer(request), [&](const error_code& unsent, std::size_t) {
      failed = unsent;
      if (failed) return;
      asio::async_read(socket, asio::dynamic_buffer(answer, 1u << 20),
                       [&](const error_code& end, std::size_t) {
                         if (end != asio::error::eof) failed = end;
                       });
    });
  });
  context.run_for(timeout);
  if (!context.stopped()) return fail("no answer within " + FormatDuration(timeout));
  if (failed == asio::error::connection_refused) {
    return fail("nobody listens there; start it with `tidegate serve`, or name it with --server");
  }
  if (failed) return fail(failed.message());
  return answer;
}

int Status(std::string_view answer) {
  int status = 0;
  if (!answer.starts_with("HTTP/1.1 ")) return 0;
  std::from_chars(answer.data() + 9, answer.data() + answer.size(), status);
  return status;
}

void Print(const json::object& decision, std::ostream& out) {
  const auto number = [&](const char* name) {
    const json::value* const value = decision.if_contains(name);
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
  };
  const bool allowed = decision.at("allowed").as_bool();
  out << (allowed ? "allowed" : "denied");
  if (decision.contains("limit")) {
    out << ", " << number("remaining") << " of " << number("limit") << " left";
  } else if (decision.contains("rule")) {
    out << " without being counted: the store does not answer";
  }
  if (decision.contains("never")) {
    out << ", and it can never pass: the cost is above the limit";
  } else if (!allowed) {
    out << ", try again in " << FormatDuration(std::chrono::milliseconds{number("retry_after_ms")});
  }
  out << '\n';
}

}  // namespace

int Decide(const DecideOptions& options, std::ostream& out, std::ostream& err) {
  const auto answer = Exchange(AddressOf(options.server), RequestText(options), options.timeout);
  if (!answer) {
    err << "tidegate decide: " << answer.error().message << '\n';
    return kNoAnswer;
  }
  const int status = Status(*answer);
  const std::size_t head = answer->find("\r\n\r\n");
  error_code error;
  const json::value body =
      head == std::string::npos ? json::value{} : json::parse(answer->substr(head + 4), error);
  if (error || !body.is_object()) {
    err << "tidegate decide: " << options.server << " does not answer like a tidegate server\n";
    return kNoAnswer;
  }
  const json::object& decision = body.get_object();
  if (!decision.contains("allowed")) {
    const json::value* const detail = decision.if_contains("detail");
    err << "tidegate decide: "
        << (detail != nullptr && detail->is_string() ? std::string_view(detail->get_string())
                                                     : "the server refused the question")
        << '\n';
    return status == 400 || status == 404 ? kUsage : kNoAnswer;
  }
  if (options.json) {
    out << answer->substr(head + 4);
  } else {
    Print(decision, out);
  }
  return decision.at("allowed").as_bool() ? kOk : kRuntime;
}

}  // namespace tidegate::cli
