// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_sentinels.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "support/child_process.hpp"
#include "support/ports.hpp"
#include "support/timing.hpp"
#include "support/wait.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> ServerArguments(const RedisSentinels::Options& options, int master) {
  std::vector<std::string> arguments = {"--repl-diskless-sync-delay", "0",
                                        "--repl-ping-replica-period", "1"};
  if (master != 0) {
    arguments.insert(arguments.end(), {"--replicaof", "127.0.0.1 " + std::to_string(master)});
  }
  if (options.wire == RedisServer::Wire::kTls) {
    arguments.insert(arguments.end(), {"--tls-replication", "yes"});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return arguments;
}

/// Returns the configuration of sentinel `number`. Each sentinel notices a failure 150 ms later
/// than the one before it, because two sentinels that compete for the leadership delay the failover
/// by seconds.
std::string SentinelLines(const RedisSentinels::Options& options, int master, int number) {
  const int down_after_ms = options.down_after_ms + 150 * number;
  std::string lines = "sentinel monitor mymaster 127.0.0.1 " + std::to_string(master) + " 2\n";
  lines += "sentinel down-after-milliseconds mymaster " + std::to_string(down_after_ms);
  lines += "\nsentinel failover-timeout mymaster 2000\nsentinel parallel-syncs mymaster 2\n";
  if (!options.password.empty()) {
    lines += "requirepass " + options.password + "\n";
    lines += "sentinel sentinel-pass " + options.password + "\n";
  }
  if (options.wire == RedisServer::Wire::kTls) lines += "tls-replication yes\n";
  return lines + options.lines;
}

/// Returns the value after `name` in a reply that lists names and values.
std::string ValueOf(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(' ' + name + ' ');
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

Sentinel::Sentinel(std::string lines, RedisServer::Wire wire)
    : lines_(std::move(lines)), port_(test::FreePort()), wire_(wire) {}

void Sentinel::Start() {
  const std::filesystem::path config = folder_.path() / "sentinel.conf";
  if (!written_) {
    const bool tls = wire_ == RedisServer::Wire::kTls;
    std::ofstream(config) << "bind 127.0.0.1\ndir " << folder_.path().string() << "\nport "
                          << (tls ? 0 : port_) << "\ntls-port " << (tls ? port_ : 0)
                          << "\nunixsocket " << unix_socket() << '\n'
                          << lines_;
    written_ = true;  // From then on the sentinel rewrites the file itself.
  }
  process_ = test::ChildProcess({"redis-server", config.string(), "--sentinel"},
                                {.output = folder_ / "log"});
  const bool up = test::WaitUntil([&] {
    client_ = std::make_unique<RedisClient>(0, unix_socket());
    return client_->connected() && client_->Command({"PING"}) != nullptr;
  });
  if (!up)
    throw std::runtime_error(std::string(test::kTiming) +
                             "a sentinel does not answer: " + Output());
  // Shortens the periods of the sentinel, which otherwise take seconds: to notice that a server
  // lives, to announce itself, to query the other sentinels, to look at replicas, and to turn a
  // returning old master into a replica (four times the publish period). A short tilt-period keeps
  // a pause of the machine from disabling the sentinel for half a minute. ping-period is no shorter
  // than 300 ms: five periods must cover the second after which a replica is looked at, or the
  // replica never qualifies.
  const std::size_t at = lines_.find("requirepass ");
  if (at != std::string::npos) {
    Text({"AUTH", lines_.substr(at + 12, lines_.find('\n', at) - at - 12)});
  }
  const std::string reply =
      Text({"SENTINEL", "DEBUG", "ping-period", "300", "publish-period", "200", "ask-period", "100",
            "info-period", "500", "tilt-period", "1000"});
  if (reply != "OK") throw std::runtime_error("a sentinel refuses SENTINEL DEBUG: " + reply);
}

void Sentinel::Kill() {
  process_.Kill();
  client_.reset();
}

std::string Sentinel::Text(const std::vector<std::string>& arguments) {
  return client_ ? client_->Text(arguments) : "(not running)";
}

std::string Sentinel::Output() const {
  std::ifstream in(folder_.path() / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}

RedisSentinels::RedisSentinels(Options options) : options_(std::move(options)) {
  for (int i = 0; i < 3; ++i) {
    const int master = servers_.empty() ? 0 : servers_[0]->port();
    servers_.push_back(std::make_unique<RedisServer>(
        RedisServer::Options{.arguments = ServerArguments(options_, master),
                             .port = test::FreePort(),
                             .wire = options_.wire}));
  }
  for (int i = 0; i < 3; ++i) {
    sentinels_.push_back(
        std::make_unique<Sentinel>(SentinelLines(options_, servers_[0]->port(), i), options_.wire));
  }
  // A sentinel learns of the replicas from the master, which it queries rarely, so the replicas
  // must follow the master first.
  if (!test::WaitUntil([&] { return Follows(1, 0) && Follows(2, 0); })) {
    throw std::runtime_error(std::string(test::kTiming) + "the replicas do not follow:\n" +
                             servers_[1]->Output());
  }
  if (options_.start_sentinels) StartSentinels();
}

void RedisSentinels::StartSentinels() {
  for (const auto& sentinel : sentinels_) {
    if (!sentinel->running()) sentinel->Start();
  }
  AwaitWhole();
}

std::string RedisSentinels::url(std::string_view user) const {
  const bool tls = options_.wire == RedisServer::Wire::kTls;
  std::string url = tls ? "rediss+sentinel://" : "redis+sentinel://";
  url += user;
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    url += (i == 0 ? "" : ",") + sentinels_[i]->address();
  }
  return url + "/mymaster";
}

std::size_t RedisSentinels::Master() {
  std::vector<std::size_t> votes(size() + 1);
  std::size_t living = 0;
  for (const auto& sentinel : sentinels_) {
    if (!sentinel->running()) continue;
    ++living;
    const std::string reply = sentinel->Text({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
    for (std::size_t i = 0; i < size(); ++i) {
      if (reply == "127.0.0.1 " + std::to_string(servers_[i]->port())) ++votes[i];
    }
  }
  const auto most = std::max_element(votes.begin(), votes.end());
  return living > 0 && *most == living ? static_cast<std::size_t>(most - votes.begin()) : size();
}

bool RedisSentinels::Switched(std::size_t before) {
  const std::size_t now = Master();
  return now != size() && now != before && servers_[now]->running() &&
         servers_[now]->Text({"ROLE"}).starts_with("master");
}

bool RedisSentinels::Follows(std::size_t server, std::size_t master) {
  const std::string info = servers_[server]->Text({"INFO", "replication"});
  return info.find("role:slave") != std::string::npos &&
         info.find("master_port:" + std::to_string(servers_[master]->port())) !=
             std::string::npos &&
         info.find("master_link_status:up") != std::string::npos;
}

bool RedisSentinels::Whole() {
  const std::size_t master = Master();
  if (master == size()) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (i != master && servers_[i]->running() && !Follows(i, master)) return false;
  }
  return std::all_of(sentinels_.begin(), sentinels_.end(), [](const auto& sentinel) {
    if (!sentinel->running()) return true;
    const std::string reply = sentinel->Text({"SENTINEL", "MASTER", "mymaster"});
    return ValueOf(reply, "num-other-sentinels") == "2" && ValueOf(reply, "num-slaves") == "2" &&
           ValueOf(reply, "flags") == "master" &&
           sentinel->Text({"SENTINEL", "REPLICAS", "mymaster"}).find("s_down") == std::string::npos;
  });
}

void RedisSentinels::AwaitWhole() {
  if (!test::WaitUntil([&] { return Whole(); }, 20s)) {
    throw std::runtime_error(std::string(test::kTiming) + "the sentinels do not agree:\n" +
                             sentinels_[0]->Output());
  }
}

}  // namespace tidegate::redis_test
