// SPDX-License-Identifier: Apache-2.0
#include "store/redis/client.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tidegate::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kMostHops = 3;
/// Beside twice those that own something. Whoever sends us to ever new ones is no cluster.
constexpr std::size_t kMoreNodes = 32;

std::int64_t Nanoseconds(Client::Clock::time_point at) noexcept {
  return nanoseconds{at.time_since_epoch()}.count();
}
Client::Clock::time_point TimeOf(std::int64_t since) noexcept {
  return Client::Clock::time_point{nanoseconds{since}};
}

}  // namespace

Client::Client(net::Reactor& reactor, const Options& options, const Fingerprinter& fingerprinter,
               Listener& listener)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      options_(options),
      listener_(listener),
      names_(options.prefix),
      channel_(names_.Channel()),
      batches_(names_, fingerprinter),
      slotted_(options.url.mode == RedisUrl::Mode::kCluster),
      directory_(NewDirectory()),
      by_slot_(slotted_ ? kSlots : 1) {}

void Client::Start() {
  if (options_.url.tls != (options_.tls != nullptr)) {
    throw std::logic_error(
        "a URL with TLS needs a TlsClient, and a URL without TLS must not have one");
  }
  stopped_ = false;
  directory_->Start();
}

void Client::Stop() {
  stopped_ = true;
  directory_->Stop();
  net::Timer::Disarm();
  for (auto& [endpoint, node] : nodes_) node->Stop();
  EndDiscovery();
  for (Delayed& each : std::exchange(delayed_, {}))
    Fail(std::move(each.batch), Reason::kRedisError);
  NoteState();
}

// --- Calls coming in ------------------------------------------------------------

void Client::Divide(Call& call, Parts& parts) {
  parts.count = 0;
  const auto now = Clock::now();
  bool migrating = false;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Charge& charge = call.charges[i];
    const bool same_tag =
        i > 0 && charge.effective_slot_tag() == call.charges[i - 1].effective_slot_tag();
    if (same_tag && !migrating) {
      parts.part[i] = parts.part[i - 1];
      continue;
    }
    const Slot slot = KeyNames::SlotOf(charge);
    migrating = !migrating_.empty() && migrating_.Has(slot, now);
    std::size_t part = 0;
    while (part < parts.count && (migrating || parts.slot[part] != slot)) ++part;
    parts.part[i] = static_cast<std::uint8_t>(part);
    if (part < parts.count) continue;
    parts.slot[part] = slot;
    ++parts.count;
  }
  call.record.slot = parts.slot[0];
}

Node* Client::NodeFor(Slot slot) {
  if (version_ != directory_->version()) {
    version_ = directory_->version();
    std::ranges::fill(by_slot_, nullptr);
  }
  Node*& known = by_slot_[slotted_ ? slot : 0];
  if (known != nullptr) return known;
  const Endpoint* const owner = directory_->OwnerOf(slot);
  if (owner == nullptr) return nullptr;
  return known = &At(*owner);
}

void Client::Submit(Call& call) {
  const auto now = Clock::now();
  call.record.since = Nanoseconds(now);
  call.record.resumed = false;
  Enter(call, now);
}

void Client::Resume(Call& call) {
  const auto now = Clock::now();
  call.record.resumed = true;
  if (TimeOf(call.record.since) + options_.deadline <= now) {
    return FailUnsent(call, Reason::kTimeout);
  }
  Enter(call, now);
}

void Client::Enter(Call& call, Clock::time_point now) {
  Reason reason = Reason::kBreakerOpen;
  if (stopped_) return FailUnsent(call, reason);
  if (waiting() >= options_.most_waiting) return FailUnsent(call, Reason::kQueueFull);
  const Slot slot = call.record.slot;
  Node* const node = NodeFor(slot);
  const bool single = !migrating_.empty() && migrating_.Has(slot, now);
  if (node == nullptr && discovering_) {
    call.record.batch = nullptr;
    pending_discovery_.push_back(&call);
  } else if (node == nullptr) {
    directory_->OnTrouble();
    return FailUnsent(call, reason);
  } else if (!node->Take(call, slot, single, reason)) {
    return FailUnsent(call, reason);
  }
  WaitingList& list = ListOf(call);
  list.Add(call);
  stats_.waiting.Set(waiting());
  if (list.first() == &call) Arm();
}

void Client::EndDiscovery() {
  discovering_ = false;
  for (Call* const call : std::exchange(pending_discovery_, {})) {
    Leave(*call);
    Resume(*call);
  }
}

void Client::Run(Slot slot, std::string_view command, Node::Done done) {
  Node* const node = NodeFor(slot);
  if (node == nullptr) {
    if (done) done(nullptr);
    return;
  }
  if (!slotted_) return node->Run(command, std::move(done));
  node->Run(command, [this, slot, done = std::move(done)](const Reply* reply) {
    // The caller tries again some other time; by then the slot's new owner is known.
    const bool refused = reply != nullptr && reply->is(Reply::Type::kError);
    const auto redirect = refused ? ReadRedirect(reply->text) : std::nullopt;
    if (redirect && redirect->kind == Redirect::Kind::kMoved && redirect->slot == slot) {
      directory_->OnTrouble();
    }
    if (done) done(reply);
  });
}

bool Client::ready(Slot slot) {
  Node* const node = NodeFor(slot);
  return node != nullptr && node->up();
}

bool Client::ready() {
  const std::vector<Endpoint> owners = directory_->Owners();
  return !owners.empty() && std::ranges::all_of(owners, [this](const Endpoint& owner) {
    const auto found = nodes_.find(owner);
    return found != nodes_.end() && found->second->up();
  });
}

// --- Batches that belong elsewhere -------------------------------------------------

void Client::OnElsewhere(Node& node, std::unique_ptr<Batch> batch, ErrorKind kind,
                         std::string_view error) {
  const auto now = Clock::now();
  if (!slotted_) {
    listener_.OnNotice(
        Listener::Notice::kError, kind, node.endpoint().Shown(),
        "this Redis is a node of a cluster: write `redis+cluster://` into store.url (reply: `" +
            std::string(error.substr(0, 200)) + "`)");
    return Fail(std::move(batch), Reason::kRedisError);
  }
  const bool on_its_way = kind == ErrorKind::kAsk || kind == ErrorKind::kTryAgain;
  if (on_its_way) {
    migrating_.Note(batch->slot(), now);
    // Some of its keys are here and some there, or will be.
    if (!batch->single() && batch->keys() > 1) return Split(std::move(batch));
  }
  if (kind == ErrorKind::kMoved || kind == ErrorKind::kAsk) {
    return SendOn(node, std::move(batch), error);
  }
  if (kind == ErrorKind::kClusterDown) directory_->OnTrouble();
  Delay(std::move(batch));
}

void Client::SendOn(Node& node, std::unique_ptr<Batch> batch, std::string_view error) {
  auto redirect = ReadRedirect(error);
  if (!redirect || redirect->slot != batch->slot() || batch->hops >= kMostHops) {
    directory_->OnTrouble();
    return Fail(std::move(batch), Reason::kRedisError);
  }
  if (redirect->to.host.empty()) redirect->to.host = node.endpoint().host;
  if (!nodes_.contains(redirect->to) &&
      nodes_.size() >= 2 * directory_->Owners().size() + kMoreNodes) {
    return Fail(std::move(batch), Reason::kRedisError);
  }
  ++batch->hops;
  batch->asking = redirect->kind == Redirect::Kind::kAsk;
  if (!batch->asking) directory_->OnMoved(*redirect);
  At(redirect->to).Take(std::move(batch));
}

void Client::Split(std::unique_ptr<Batch> batch) {
  batch->TakeAll([this](Call& call) {
    Leave(call);
    listener_.OnSplit(call);
  });
  batches_.Give(std::move(batch));
}

void Client::Delay(std::unique_ptr<Batch> batch) {
  if (batch->delays++ > 0) return Fail(std::move(batch), Reason::kRedisError);
  const auto until = Clock::now() + milliseconds{1} + milliseconds{random_.Next() % 5};
  delayed_.push_back({until, std::move(batch)});
  Arm();
}

void Client::SendDelayed(Clock::time_point now) {
  // By place: what is sent may come back.
  for (std::size_t i = 0; i < delayed_.size();) {
    if (delayed_[i].until > now) {
      ++i;
      continue;
    }
    auto batch = std::move(delayed_[i].batch);
    delayed_.erase(delayed_.begin() + static_cast<std::ptrdiff_t>(i));
    Node* const node = NodeFor(batch->slot());
    batch->asking = false;
    if (node == nullptr) {
      Fail(std::move(batch), Reason::kRedisError);
    } else {
      node->Take(std::move(batch));
    }
  }
}

void Client::Fail(std::unique_ptr<Batch> batch, Reason reason) {
  batch->TakeAll([&](Call& call) {
    call.not_executed = true;
    OnFailed(call, reason);
  });
  batches_.Give(std::move(batch));
}

// --- Time ----------------------------------------------------------------------------

void Client::FailOverdue(WaitingList& list, Clock::time_point now) {
  while (list.first() != nullptr && TimeOf(list.first()->record.since) + options_.deadline <= now) {
    Call& call = *list.first();
    if (call.record.batch == nullptr) {
      call.not_executed = true;
      std::erase(pending_discovery_, &call);
    } else {
      Batch& batch = *call.record.batch;
      call.not_executed = batch.attempts() == 0;
      batch.Remove(call);
    }
    OnFailed(call, Reason::kTimeout);
  }
}

void Client::OnTimer(net::Timer::Clock::time_point now) {
  if (stopped_) return;
  FailOverdue(fresh_, now);
  FailOverdue(resumed_, now);
  SendDelayed(now);
  if (now >= retire_at_) Retire(now);
  Arm();
}

void Client::Arm() {
  if (stopped_) return;
  auto due = retire_at_;
  for (const WaitingList* const list : {&fresh_, &resumed_}) {
    if (list->first() == nullptr) continue;
    due = std::min(due, TimeOf(list->first()->record.since) + options_.deadline);
  }
  for (const Delayed& each : delayed_) due = std::min(due, each.until);
  if (due != Clock::time_point::max()) ArmAt(due);
}

}  // namespace tidegate::redis
