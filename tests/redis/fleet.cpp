// SPDX-License-Identifier: Apache-2.0
#include "redis/fleet.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "redis/spawn.hpp"

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Answer Exchange(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::string received;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    std::array<char, 65536> buffer;  // NOLINT: filled by recv.
    for (ssize_t got = 0; (got = recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
      received.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  close(fd);
  Answer answer;
  const std::size_t end = received.find("\r\n\r\n");
  if (end == std::string::npos || received.size() < 12) return answer;
  answer.head = received.substr(0, end + 2);
  answer.body = received.substr(end + 4);
  std::from_chars(received.data() + 9, received.data() + 12, answer.status);
  return answer;
}

/// The port in the log's line about `what`; 0 as long as it is not there.
int PortIn(const std::string& log, std::string_view what) {
  constexpr std::string_view kWhere = "  on=http://127.0.0.1:";
  const std::size_t line = log.find(" info: " + std::string(what));
  const std::size_t end = line == std::string::npos ? line : log.find('\n', line);
  if (end == std::string::npos) return 0;
  const std::size_t at = log.find(kWhere, line);
  int port = 0;
  if (at < end) std::from_chars(log.data() + at + kWhere.size(), log.data() + end, port);
  return port;
}

}  // namespace

std::string Answer::Member(std::string_view name) const {
  const std::string wanted = '"' + std::string(name) + "\":";
  const std::size_t at = body.find(wanted);
  if (at == std::string::npos) return {};
  std::size_t begin = at + wanted.size();
  if (body[begin] == '"') return body.substr(begin + 1, body.find('"', begin + 1) - begin - 1);
  return body.substr(begin, body.find_first_of(",}]", begin) - begin);
}

double Answer::Number(std::string_view name) const {
  const std::string text = Member(name);
  double number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string Answer::Field(std::string_view name) const {
  const std::string wanted = "\r\n" + std::string(name) + ": ";
  const std::size_t at = head.find(wanted);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + wanted.size();
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

Answer Ask(int port, std::string_view path, std::string_view body) {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  request += "Content-Type: application/json\r\nConnection: close\r\nContent-Length: ";
  request += std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  return Exchange(port, request);
}

Answer Fetch(int port, std::string_view path) {
  return Exchange(port, "GET " + std::string(path) +
                            " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
}

Node::Node(const fs::path& folder, std::string name, std::string yaml, int threads, int resp,
           MoreDoors doors)
    : folder_(folder),
      name_(std::move(name)),
      yaml_(std::move(yaml)),
      threads_(threads),
      resp_(resp),
      doors_(doors) {
  Start();
}

Node::~Node() { Kill(); }

void Node::Start() {
  const fs::path config = file();
  const fs::path log = folder_ / (name_ + ".log");
  const auto door = [](std::string_view name, int port) {
    return ", " + std::string(name) + ": \"127.0.0.1:" + std::to_string(port) + '"';
  };
  const bool asks = doors_.admin == MoreDoors::Admin::kAsksForTokens;
  std::ofstream(config) << "listen: {api: \"127.0.0.1:" << api_
                        << "\", admin: { address: \"127.0.0.1:" << admin_ << '"'
                        << (asks ? ", auth: required }" : " }")
                        << (resp_ == 0 ? "" : door("resp", resp_))
                        << (doors_.gateway == 0 ? "" : door("gateway", doors_.gateway))
                        << "}\n"
                        // Only root may count the descriptors of an undumpable process.
                        << (geteuid() == 0 ? "" : "process: {dumpable: true}\n") << yaml_;
  // What it said in an earlier life must not be taken for this one's.
  fs::remove(log);
  ended_ = 0;
  pid_ = Spawn({TIDEGATE_BINARY, "serve", "--config", config.string(), "--threads",
                std::to_string(threads_)},
               log);
  const bool up = Soon([&] {
    const std::string said = Said();
    const int api = PortIn(said, "HTTP API");
    const int admin = PortIn(said, "admin: ");
    if (api == 0 || admin == 0) return !Alive();
    api_ = api;
    admin_ = admin;
    return true;
  });
  if (!up || !Alive()) throw std::runtime_error("tidegate does not come up:\n" + Said());
}

void Node::Kill() {
  if (pid_ <= 0) return;
  KillAndWait(pid_);
  pid_ = -1;
}

void Node::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

bool Node::Alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, &ended_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

std::string Node::Said() const {
  std::string said = ReadFile(folder_ / (name_ + ".log"));
  if (WIFSIGNALED(ended_)) said += "died of signal " + std::to_string(WTERMSIG(ended_)) + '\n';
  return said;
}

long Node::ResidentBytes() const {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int Node::Descriptors() const {
  int count = 0;
  std::error_code gone;
  for (auto it = fs::directory_iterator("/proc/" + std::to_string(pid_) + "/fd", gone);
       !gone && it != fs::directory_iterator(); it.increment(gone)) {
    ++count;
  }
  return count;
}

double Node::CpuSeconds() const {
  double total = 0;
  std::error_code gone;
  for (auto it = fs::directory_iterator("/proc/" + std::to_string(pid_) + "/task", gone);
       !gone && it != fs::directory_iterator(); it.increment(gone)) {
    double nanoseconds = 0;
    std::ifstream(it->path() / "schedstat") >> nanoseconds;
    total += nanoseconds / 1e9;
  }
  return total;
}

std::string Node::Metrics() const { return Fetch(admin_, "/metrics").body; }

double Node::Metric(std::string_view name, std::string_view label) const {
  std::istringstream lines(Metrics());
  double total = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const char next = line[name.size()];
    if ((next != '{' && next != ' ') || line.find(label) == std::string::npos) continue;
    double value = 0;
    std::from_chars(line.data() + line.rfind(' ') + 1, line.data() + line.size(), value);
    total += value;
  }
  return total;
}

Fleet::Fleet(const Options& options) {
  for (int i = 0; i < options.nodes; ++i) {
    nodes_.push_back(std::make_unique<Node>(folder_.path(), "node" + std::to_string(i),
                                            options.yaml, options.threads,
                                            options.resp ? LowPort() : 0));
  }
}

std::vector<int> Fleet::Apis() const {
  std::vector<int> ports;
  for (const auto& node : nodes_) ports.push_back(node->api());
  return ports;
}

bool Fleet::AllAlive() {
  bool alive = true;
  for (const auto& node : nodes_) alive = node->Alive() && alive;
  return alive;
}

double Fleet::Metric(std::string_view name, std::string_view label) const {
  double total = 0;
  for (const auto& node : nodes_) total += node->Metric(name, label);
  return total;
}

long Fleet::ResidentBytes() const {
  long total = 0;
  for (const auto& node : nodes_) total += node->ResidentBytes();
  return total;
}

int Fleet::Descriptors() const {
  int total = 0;
  for (const auto& node : nodes_) total += node->Descriptors();
  return total;
}

std::string Fleet::Failures() const {
  std::string all;
  for (const auto& node : nodes_) {
    std::istringstream lines(node->Metrics());
    for (std::string line; std::getline(lines, line);) {
      const bool told = line.starts_with("tidegate_failures_total{") ||
                        line.starts_with("tidegate_redis_errors_total{");
      if (told && !line.ends_with(" 0")) all += line + '\n';
    }
  }
  return all;
}

std::string Fleet::Said() const {
  std::string all;
  for (const auto& node : nodes_) {
    all += "--- a node said:\n";
    std::istringstream lines(node->Said());
    for (std::string line; std::getline(lines, line);) {
      // The same of every configuration here, and long.
      if (line.find("fresh limit") == std::string::npos &&
          line.find("many people may share") == std::string::npos) {
        all += line + '\n';
      }
    }
  }
  return all;
}

}  // namespace tidegate::redis_test
