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

#include "redis/spawn.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

std::string TextOf(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply.integer);
    case REDIS_REPLY_NIL:
      return "(nil)";
    case REDIS_REPLY_ERROR:
      return "(error) " + std::string(reply.str, reply.len);
    case REDIS_REPLY_ARRAY: {
      std::string text;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        if (i != 0) text += ' ';
        text += TextOf(*reply.element[i]);
      }
      return text;
    }
    default:
      return {reply.str, reply.len};
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  // In memory, where there is such a place: sentinels write their votes to disk and wait for that,
  // and one that is kept waiting by somebody else's files is taken for dead by the others.
  const std::filesystem::path memory = "/dev/shm";
  std::string name =
      ((access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path()) /
       "tidegate-XXXXXX")
          .string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!ok) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

namespace {

bool Bindable(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return ok;
}

}  // namespace

int LowPort() {
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = std::uniform_int_distribution(10'000, 22'000)(random);
    if (Bindable(port) && Bindable(port + 10'000)) return port;
  }
  throw std::runtime_error("no free pair of ports");
}

RedisClient::RedisClient(int port, const std::string& unix_socket) {
  // hiredis writes without MSG_NOSIGNAL, and servers die here.
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
    : options_(std::move(options)), port_(options_.port != 0 ? options_.port : FreePort()) {
  Start();
}

RedisServer::~RedisServer() { Kill(); }

void RedisServer::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void RedisServer::Kill() {
  if (pid_ <= 0) return;
  KillAndWait(pid_);
  pid_ = -1;
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
  pid_ = Spawn(std::move(arguments), folder_.path() / "redis.log",
               {.environment = options_.environment, .core = options_.core});
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    // Any answer will do: a password may be asked for.
    client_ = std::make_unique<RedisClient>(Connect());
    if (client_->connected() && client_->Command({"PING"}) != nullptr) return;
    std::this_thread::sleep_for(2ms);
  }
  throw std::runtime_error("redis-server does not answer: " + Said());
}

std::string RedisServer::Said() const {
  std::ifstream in(folder_.path() / "redis.log");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string RedisServer::Text(const std::vector<std::string>& arguments) {
  if (!client_ || !client_->connected()) client_ = std::make_unique<RedisClient>(Connect());
  std::string text = client_->Text(arguments);
  if (!client_->ended() || !running()) return text;
  client_ = std::make_unique<RedisClient>(Connect());
  return client_->Text(arguments);
}

double RedisServer::CpuSeconds() const {
  double total = 0;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    double nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    total += nanoseconds / 1e9;
  }
  return total;
}

}  // namespace tidegate::redis_test
