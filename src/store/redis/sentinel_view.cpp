// SPDX-License-Identifier: Apache-2.0
#include "store/redis/sentinel_view.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "store/redis/endpoint.hpp"
#include "store/redis/greeting.hpp"
#include "store/redis/redis_error.hpp"

namespace tidegate::redis {
namespace {

constexpr int kQuestions = 3;
constexpr std::string_view kNonsense =
    "sent a malformed reply: check that its port is a sentinel's";

std::optional<Endpoint> ReadAddress(std::string_view host, std::string_view port) {
  const auto number = ReadPort(port);
  if (!number || !IsHost(host)) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = *number};
}

/// Of keys and values in turn; empty: there is none.
std::string_view ValueOf(const Reply& map, std::string_view key) {
  for (std::size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == key) return map.elements[i + 1].text;
  }
  return {};
}

/// Some of a server's words, fit for a log.
std::string Quoted(std::string_view error) {
  std::string words(error.substr(0, 200));
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "`" + words + "`";
}

/// `slave <its name> <host> <port> @ <master's name> <host> <port>`.
bool IsOf(std::string_view event, std::string_view master) {
  const std::size_t at = event.find(" @ ");
  if (at == std::string_view::npos) return false;
  const std::string_view rest = event.substr(at + 3);
  return rest.starts_with(master) && rest.substr(master.size()).starts_with(' ');
}

bool SaysNoSuchMaster(const Reply& reply) {
  return reply.is(Reply::Type::kError) &&
         reply.text.find("No such master") != std::string_view::npos;
}

}  // namespace

SentinelView::SentinelView(std::vector<Endpoint> sentinels, std::string master_name,
                           std::uint64_t seed)
    : sentinels_(std::move(sentinels)), name_(std::move(master_name)), backoff_(seed) {
  if (sentinels_.size() > kMostSentinels) sentinels_.resize(kMostSentinels);
  of_start_ = sentinels_.size();
  at_ = static_cast<std::size_t>(backoff_.Random() % sentinels_.size());
}

void SentinelView::OnConnected(TimePoint now) {
  connected_ = true;
  useful_ = false;
  awaited_ = 0;
  named_.reset();
  ask_at_ = now;
}

void SentinelView::OnLost(TimePoint now) {
  const bool was_useful = std::exchange(useful_, false);
  connected_ = false;
  awaited_ = 0;
  named_.reset();
  ask_at_ = TimePoint::max();
  at_ = (at_ + 1) % sentinels_.size();
  connect_at_ = ++failures_ < sentinels_.size() ? now : now + backoff_.Next();
  // Each might answer and then hang up: without this, that would be a loop as fast as the network.
  if (was_useful) connect_at_ = std::max(connect_at_, last_asked_ + kAgain);
}

void SentinelView::Ask(std::string& out, TimePoint now) {
  AppendCommand(out, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name_});
  AppendCommand(out, {"SENTINEL", "MASTER", name_});
  AppendCommand(out, {"SENTINEL", "SENTINELS", name_});
  awaited_ = kQuestions;
  named_.reset();
  if (trouble_) ++in_trouble_;
  wanted_ = Wanted::kNo;
  last_asked_ = now;
  ask_at_ = TimePoint::max();
}

SentinelView::News SentinelView::OnReply(const Reply& reply, TimePoint now) {
  if (reply.is(Reply::Type::kPush)) return OnPush(reply, now);
  if (awaited_ == 0) return News::kNothing;
  switch (awaited_--) {
    case 3: return OnAddress(reply);
    case 2: return OnMaster(reply);
    default:
      OnOthers(reply);
      Rest(now);
      return News::kNothing;
  }
}

SentinelView::News SentinelView::OnAddress(const Reply& reply) {
  if (reply.is(Reply::Type::kNull) || SaysNoSuchMaster(reply)) return Unknown();
  if (reply.is(Reply::Type::kError)) {
    switch (KindOf(reply.text)) {
      case ErrorKind::kNoAuth: return Useless("requires a password: write store.sentinel.password");
      case ErrorKind::kNoPerm:
        return Useless(
            "does not allow the user of store.sentinel to query the master: grant it "
            "`+sentinel|get-master-addr-by-name +sentinel|master +sentinel|sentinels`");
      default:
        return Useless(
            "does not answer as a sentinel: check its port (reply: " + Quoted(reply.text) + ")");
    }
  }
  if (!reply.is(Reply::Type::kArray) || reply.elements.size() != 2) {
    return Useless(std::string(kNonsense));
  }
  named_ = ReadAddress(reply.elements[0].text, reply.elements[1].text);
  return named_ ? News::kNothing : Useless(std::string(kNonsense));
}

SentinelView::News SentinelView::OnMaster(const Reply& reply) {
  if (SaysNoSuchMaster(reply)) return Unknown();
  // An error: our user may not ask for it, and then there is nothing to compare.
  if (!reply.is(Reply::Type::kError)) {
    if (!reply.is(Reply::Type::kArray)) return Useless(std::string(kNonsense));
    const auto epoch = ReadWhole(ValueOf(reply, "config-epoch"));
    if (!epoch) return Useless(std::string(kNonsense));
    // If all of them are, they were set up again, and our epoch is the old one.
    if (*epoch < epoch_ && ++behind_ < sentinels_.size()) {
      return Useless("is behind the others: its epoch is " + std::to_string(*epoch) +
                     ", but another sentinel's is " + std::to_string(epoch_));
    }
    epoch_ = *epoch;
    behind_ = 0;
  }
  useful_ = true;
  failures_ = 0;
  backoff_.Reset();
  problem_.clear();
  const bool named = named_.has_value();
  const News news = named ? Believe(*std::exchange(named_, std::nullopt)) : News::kNothing;
  if (news == News::kMaster || !trouble_) fruitless_ = 0;
  if (news == News::kNothing && trouble_ && named && ++fruitless_ >= kMostFruitless) {
    fruitless_ = 0;
    return Useless(
        "still reports a master that does not answer or is not a master: trying another sentinel");
  }
  return news;
}

void SentinelView::OnOthers(const Reply& reply) {
  if (!reply.is(Reply::Type::kArray)) return;
  std::vector<Endpoint> named;
  for (const Reply& other : reply.elements) {
    if (named.size() == kMostSentinels) break;
    auto address = ReadAddress(ValueOf(other, "ip"), ValueOf(other, "port"));
    if (address) named.push_back(*std::move(address));
  }
  const auto has = [](const std::vector<Endpoint>& all, const Endpoint& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  for (const Endpoint& one : named) {
    if (has(sentinels_, one)) continue;
    if (sentinels_.size() < kMostSentinels) {
      sentinels_.push_back(one);
      continue;
    }
    // Where addresses change with each start, those of long ago make room.
    for (std::size_t i = of_start_; i < sentinels_.size(); ++i) {
      if (i == at_ || has(named, sentinels_[i])) continue;
      sentinels_[i] = one;
      break;
    }
  }
}

SentinelView::News SentinelView::OnPush(const Reply& push, TimePoint now) {
  const auto& parts = push.elements;
  if (!connected_ || parts.size() != 3 || parts[0].text != "message") return News::kNothing;
  if (parts[1].text == "+promoted-slave" && IsOf(parts[2].text, name_)) {
    // The one that leads a failover says `+switch-master` when all replicas follow; who is the
    // master it can answer from now on.
    AskNow(now);
    return News::kNothing;
  }
  if (parts[1].text != "+switch-master") return News::kNothing;
  std::string_view rest = parts[2].text;
  if (!rest.starts_with(name_)) return News::kNothing;
  rest.remove_prefix(name_.size());
  // Old host, old port, new host, new port, each behind one space.
  std::array<std::string_view, 4> words;
  for (std::string_view& word : words) {
    if (!rest.starts_with(' ')) return News::kNothing;
    rest.remove_prefix(1);
    word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
  }
  const auto address = ReadAddress(words[2], words[3]);
  if (!rest.empty() || !address) return News::kNothing;
  named_.reset();  // What it was named before is older.
  AskNow(now);
  return Believe(*address);
}

void SentinelView::AskNow(TimePoint now) {
  if (awaited_ > 0) {
    wanted_ = Wanted::kNow;
  } else {
    ask_at_ = now;
  }
}

void SentinelView::OnWell() noexcept {
  trouble_ = false;
  in_trouble_ = 0;
  fruitless_ = 0;
}

void SentinelView::OnTrouble(TimePoint now) {
  trouble_ = true;
  if (!connected_ || wanted_ != Wanted::kNo) return;
  wanted_ = Wanted::kSoon;
  if (awaited_ == 0) ask_at_ = std::min(ask_at_, Soon(now));
}

void SentinelView::Rest(TimePoint now) {
  const bool soon = trouble_ || wanted_ == Wanted::kSoon;
  ask_at_ = wanted_ == Wanted::kNow ? now : soon ? Soon(now) : now + kEvery;
}

SentinelView::TimePoint SentinelView::Soon(TimePoint now) {
  constexpr auto kHalf = std::chrono::duration_cast<Backoff::Duration>(kAgain) / 2;
  const auto chance = backoff_.Random() % (static_cast<std::uint64_t>(kHalf.count()) + 1);
  // A failover takes seconds, or does not come at all: less and less often.
  const auto again =
      kAgain * std::min<std::int64_t>(5, 1 + static_cast<std::int64_t>(in_trouble_) / 20);
  return std::max(now, last_asked_ + again + Backoff::Duration{static_cast<std::int64_t>(chance)});
}

SentinelView::News SentinelView::Believe(const Endpoint& address) {
  if (master_ == address) return News::kNothing;
  master_ = address;
  OnWell();  // The trouble was with another one.
  return News::kMaster;
}

SentinelView::News SentinelView::Useless(std::string why) {
  problem_ = "the sentinel at " + sentinel().Shown() + " " + std::move(why);
  awaited_ = 0;
  connected_ = false;
  ask_at_ = TimePoint::max();
  return News::kUseless;
}

}  // namespace tidegate::redis
