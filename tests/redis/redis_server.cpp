// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_server.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include "support/child_process.hpp"
#include "support/files.hpp"
#include "support/ports.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

std::string TextOf(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return std::to_string(reply.integer);
    case REDIS_REPLY_NIL: return "(nil)";
    case REDIS_REPLY_ERROR: return "(error) " + std::string(reply.str, reply.len);
    case REDIS_REPLY_ARRAY: {
      std::string text;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        if (i != 0) text += ' ';
        text += TextOf(*reply.element[i]);
      }
      return text;
    }
    default: return {reply.str, reply.len};
  }
}

}  // namespace

RedisClient::RedisClient(int port, const std::string& unix_socket) {
  // hiredis writes without MSG_NOSIGNAL, and these tests kill servers.
  std::signal(SIGPIPE, SIG_IGN);
  const timeval timeout{5, 0};
  context_.reset(unix_socket.empty() ? redisConnectWithTimeout("127.0.0.1", port, timeout)
                                     : redisConnectUnixWithTimeout(unix_socket.c_str(), timeout));
  if (connected()) redisSetTimeout(context_.get(), timeout);
}

Reply RedisClient::Command(const std::vector<std::string>& arguments) {
  if (!connected()) return nullptr;
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& argument : arguments) {
    texts.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  return Reply(static_cast<redisReply*>(redisCommandArgv(
      context_.get(), static_cast<int>(arguments.size()), texts.data(), sizes.data())));
}

std::string RedisClient::Text(const std::vector<std::string>& arguments) {
  const Reply reply = Command(arguments);
  return reply ? TextOf(*reply) : "(no reply)";
}

RedisServer::RedisServer(Options options)
    : options_(std::move(options)), port_(options_.port != 0 ? options_.port : test::FreePort()) {
  Start();
}

RedisServer::~RedisServer() { Kill(); }

void RedisServer::Kill() {
  process_.Kill();
  client_.reset();
}

void RedisServer::Start() {
  const bool tls = options_.wire == Wire::kTls;
  std::vector<std::string> arguments = {"redis-server",
                                        "--port",
                                        tls ? "0" : std::to_string(port_),
                                        "--tls-port",
                                        tls ? std::to_string(port_) : "0",
                                        "--bind",
                                        "127.0.0.1",
                                        "--save",
                                        "",
                                        "--appendonly",
                                        "no",
                                        "--dir",
                                        folder_.path().string(),
                                        "--unixsocket",
                                        unix_socket(),
                                        "--enable-debug-command",
                                        "yes"};
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  process_ = test::ChildProcess(std::move(arguments), {.output = folder_ / "redis.log",
                                                       .environment = options_.environment,
                                                       .core = options_.core});
  const bool up = test::WaitUntil([this] {
    // Any reply shows that the server is up, even an error: the server may require a password.
    client_ = std::make_unique<RedisClient>(Connect());
    return client_->connected() && client_->Command({"PING"}) != nullptr;
  });
  if (!up) throw std::runtime_error("redis-server does not answer: " + Output());
}

std::string RedisServer::Text(const std::vector<std::string>& arguments) {
  if (!client_ || !client_->connected()) client_ = std::make_unique<RedisClient>(Connect());
  std::string text = client_->Text(arguments);
  if (!client_->ended() || !running()) return text;
  client_ = std::make_unique<RedisClient>(Connect());
  return client_->Text(arguments);
}

}  // namespace tidegate::redis_test
