// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

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
  std::string name = (std::filesystem::temp_directory_path() / "tidegate-XXXXXX").string();
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

RedisClient::RedisClient(int port, const std::string& unix_socket) {
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

RedisServer::RedisServer(Options options) : options_(std::move(options)), port_(FreePort()) {
  Start();
}

RedisServer::~RedisServer() { Kill(); }

void RedisServer::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void RedisServer::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
  client_.reset();
}

void RedisServer::Start() {
  std::vector<std::string> arguments = {"redis-server",
                                        "--port",
                                        std::to_string(port_),
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
  const std::string log = (folder_.path() / "redis.log").string();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (options_.core >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(options_.core), &set);
      sched_setaffinity(0, sizeof set, &set);
    }
    for (std::string& variable : options_.environment) putenv(variable.data());
    const int out = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    // Any answer will do: a password may be asked for.
    client_ = std::make_unique<RedisClient>(port_);
    if (client_->connected() && client_->Command({"PING"}) != nullptr) return;
    std::this_thread::sleep_for(2ms);
  }
  std::ifstream in(log);
  throw std::runtime_error("redis-server does not answer: " +
                           std::string(std::istreambuf_iterator<char>(in), {}));
}

std::string RedisServer::Text(const std::vector<std::string>& arguments) {
  if (!client_ || !client_->connected()) client_ = std::make_unique<RedisClient>(port_);
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
