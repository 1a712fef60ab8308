// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as replies of cluster nodes and sentinels. Both views receive each reply, and
// each error as a redirection. Whatever arrives: owners and masters are addresses that can be
// connected to, a rejected reply changes nothing, and there is always a time for the next request.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "store/redis/cluster_view.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/resp_reader.hpp"
#include "store/redis/sentinel_view.hpp"

namespace tidegate::redis {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "views_fuzz: %s\n", what);
  std::abort();
}

void RequireAddress(const Endpoint& endpoint) {
  Require(IsHost(endpoint.host) && endpoint.port > 0 && endpoint.path.empty(), "no address");
}

/// Both views, as a client uses them. The master has a short name, so that a fuzzer finds it.
class Watcher {
 public:
  void Tell(const Reply& reply, TimePoint now) {
    TellCluster(reply, now);
    TellSentinel(reply, now);
    if (const auto redirect = ReadRedirect(reply.text)) OnRedirect(*redirect, now);
  }

 private:
  void TellCluster(const Reply& reply, TimePoint now) {
    if (now >= cluster_.due()) cluster_.OnAsked(now);
    const std::uint64_t version = cluster_.version();
    const bool known = cluster_.known();
    const bool sense = cluster_.OnSlots(reply, {.host = "queried", .port = 1}, now);
    Require(sense || (cluster_.version() == version && cluster_.known() == known),
            "nonsense changed something");
    Require(cluster_.due() <= now + ClusterView::kQuiet, "no query is due again");
    if (sense) CheckMasters(version);
  }

  void CheckMasters(std::uint64_t version) {
    const auto masters = cluster_.Masters();
    for (const Endpoint& master : masters) RequireAddress(master);
    Require(cluster_.version() != version || masters == masters_, "others of the same version");
    masters_ = masters;
  }

  void TellSentinel(const Reply& reply, TimePoint now) {
    if (!connected_ && now >= sentinel_.connect_at()) {
      sentinel_.OnConnected(now);
      connected_ = true;
    }
    if (!connected_) return;
    if (now >= sentinel_.ask_at()) {
      std::string out;
      sentinel_.Ask(out, now);
    }
    const auto before = sentinel_.master();
    const auto news = sentinel_.OnReply(reply, now);
    Require((news == SentinelView::News::kMaster) == (before != sentinel_.master()), "no news");
    if (sentinel_.master()) RequireAddress(*sentinel_.master());
    for (const Endpoint& sentinel : sentinel_.sentinels()) RequireAddress(sentinel);
    Require(sentinel_.sentinels().size() <= SentinelView::kMostSentinels, "too many sentinels");
    if (news != SentinelView::News::kUseless) return;
    for (const char c : sentinel_.problem()) Require(c >= ' ' && c <= '~', "not fit for a log");
    sentinel_.OnLost(now);
    connected_ = false;
    Require(sentinel_.connect_at() <= now + Backoff::kCap, "no sentinel is ever tried again");
  }

  void OnRedirect(const Redirect& redirect, TimePoint now) {
    Require(redirect.slot < kSlots && redirect.to.port > 0, "redirected to nowhere");
    if (redirect.to.host.empty()) return;
    RequireAddress(redirect.to);
    cluster_.OnMoved(redirect, now);
    const Endpoint* const owner = cluster_.OwnerOf(redirect.slot);
    Require(owner != nullptr && *owner == redirect.to, "a redirection is not believed");
    masters_ = cluster_.Masters();
  }

  ClusterView cluster_{1};
  std::vector<Endpoint> masters_;
  SentinelView sentinel_{{{.host = "a", .port = 1}, {.host = "b", .port = 1}}, "m", 1};
  bool connected_ = false;
};

}  // namespace
}  // namespace tidegate::redis

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidegate::redis;
  if (size > 8192) return 0;
  (void)ReadRedirect({reinterpret_cast<const char*>(data), size});
  const auto watcher = std::make_unique<Watcher>();
  RespReader reader;
  Reply reply;
  TimePoint now{std::chrono::hours{1}};
  reader.Feed({reinterpret_cast<const char*>(data), size});
  while (reader.Next(reply) == RespReader::Progress::kReply) {
    watcher->Tell(reply, now += milliseconds{40});
  }
  return 0;
}
