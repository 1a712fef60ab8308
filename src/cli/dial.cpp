// SPDX-License-Identifier: Apache-2.0
#include "cli/dial.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "net/resolver.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// 0, or the errno that says why not.
int Connect(int fd, const net::SocketAddress& to, const Deadline& deadline) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!deadline.Wait(fd, POLLOUT)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

std::string Why(int error, const Patience& patience) {
  if (error == ECONNREFUSED) {
    return "nobody listens there: start it with `tidegate serve`, or name it with " +
           patience.option;
  }
  if (error == ETIMEDOUT) return "no answer within " + FormatDuration(patience.timeout);
  return std::generic_category().message(error);
}

}  // namespace

bool Deadline::Wait(int fd, short events) const {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd polled[2] = {{fd, events, 0}, {cancel_, POLLIN, 0}};
    const auto most = std::min<std::int64_t>(left.count(), 1'000'000);
    const int ready = poll(polled, 2, static_cast<int>(most));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (polled[1].revents != 0) return false;
    if (polled[0].revents != 0) return true;
  }
}

Result<net::Descriptor> Dial(const ServerAddress& address, const Patience& patience,
                             const Deadline& deadline) {
  const net::Found found = net::LookUp(address.host, address.port, net::Lookup::kName);
  if (found.addresses.empty()) {
    return std::unexpected(
        Error{ErrorCode::kNetwork, found.problem + "; name another with " + patience.option});
  }
  int error = 0;
  for (const net::SocketAddress& to : found.addresses) {
    net::Descriptor socket(
        ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    error = socket ? Connect(socket.get(), to, deadline) : errno;
    if (error != 0) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return socket;
  }
  return std::unexpected(Error{ErrorCode::kNetwork, address.Told() + ": " + Why(error, patience)});
}

}  // namespace tidegate::cli
