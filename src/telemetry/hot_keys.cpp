// SPDX-License-Identifier: Apache-2.0
#include "telemetry/hot_keys.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tidegate {
namespace {

constexpr std::size_t kLeastPlaces = 1024;

void FillRandom(void* bytes, std::size_t size) {
  // Up to 256 bytes arrive whole or not at all, once the system's pool is initialised.
  while (getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
}

/// What two windows know of one key.
struct Both {
  std::uint64_t count;
  std::uint64_t error;
  bool named;
  std::uint32_t slot;
  std::string_view identity;
};

Both Add(const HotSketch::Known& a, const HotSketch::Known& b) noexcept {
  const HotSketch::Known& name = a.named ? a : b;
  return {a.count + b.count, a.error + b.error, name.named, name.slot, name.identity};
}

/// Both windows as one list. What is not listed is bounded by the largest of: what keys without a
/// place can have, places without a name, the first that is cut off.
HotList ListOf(const HotSketch& now, const HotSketch& before, std::size_t most) {
  HotList list;
  list.total = now.total() + before.total();
  std::vector<Both> all;
  const auto take = [&](const Both& key) {
    if (key.named) {
      all.push_back(key);
    } else {
      list.error = std::max(list.error, key.count);
    }
  };
  for (std::size_t place = 0; place < now.places(); ++place) {
    list.error = std::max(list.error, now.Bound(place) + before.Bound(place));
    if (const std::uint64_t key = now.At(place)) take(Add(now.Look(key), before.Look(key)));
    if (const std::uint64_t key = before.At(place)) {
      const HotSketch::Known other = now.Look(key);
      if (!other.placed) take(Add(other, before.Look(key)));
    }
  }
  const auto hotter = [](const Both& a, const Both& b) { return a.count > b.count; };
  if (all.size() > most) {
    const auto cut = all.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(all.begin(), cut, all.end(), hotter);
    list.error = std::max(list.error, cut->count);
    all.erase(cut, all.end());
  }
  std::sort(all.begin(), all.end(), hotter);
  list.keys.reserve(all.size());
  for (const Both& key : all) {
    list.keys.push_back({key.slot, std::string(key.identity), key.count, key.error});
  }
  return list;
}

}  // namespace

void HotKeys::Window::Clear() noexcept {
  requests.Clear();
  denials.Clear();
  if (std::exchange(cost_apart, false)) cost.Clear();
}

const HotSketch& HotKeys::Window::of(HotBy view) const noexcept {
  if (view == HotBy::kDenials) return denials;
  return view == HotBy::kCost && cost_apart ? cost : requests;
}

HotKeys::HotKeys(net::Timers& timers, std::size_t most, Clock::time_point now)
    : net::Timer(timers),
      most_(most),
      began_(now),
      since_(now),
      published_(std::make_shared<const HotReport>()) {
  static_assert(std::tuple_size_v<decltype(secret_)> >= XXH3_SECRET_SIZE_MIN);
  FillRandom(secret_.data(), secret_.size());
  FillRandom(&slot_secret_, sizeof slot_secret_);
  slot_secret_ |= 1;  // Odd: no two slots have the same product.
  const std::size_t places = std::max(kLeastPlaces, 4 * most);
  for (auto& window : windows_) window = std::make_unique<Window>(places);
  ArmAt(now + kEvery);
}

std::uint64_t HotKeys::Fingerprint(std::uint32_t slot, std::string_view identity) const noexcept {
  const std::uint64_t hash =
      XXH3_64bits_withSecret(identity.data(), identity.size(), secret_.data(), secret_.size()) ^
      (slot * slot_secret_);
  return hash == 0 ? 1 : hash;
}

void HotKeys::Count(std::uint32_t slot, std::string_view identity, std::int64_t cost,
                    Outcome outcome) noexcept {
  const SketchKey key{Fingerprint(slot, identity), slot, identity};
  Window& window = *windows_[0];
  if (cost != 1 || window.cost_apart) CountCost(window, key, static_cast<std::uint64_t>(cost));
  window.requests.Add(key, 1);
  if (outcome == Outcome::kDenied) window.denials.Add(key, 1);
}

void HotKeys::CountCost(Window& window, const SketchKey& key, std::uint64_t cost) noexcept {
  if (!std::exchange(window.cost_apart, true)) window.cost.CopyFrom(window.requests);
  window.cost.Add(key, cost);
}

void HotKeys::OnTimer(Clock::time_point now) {
  Tick(now);
  ArmAt(now + kEvery);
}

void HotKeys::Rotate(Clock::time_point now) noexcept {
  std::swap(windows_[0], windows_[1]);
  windows_[0]->Clear();
  since_ = std::exchange(began_, now);
}

void HotKeys::Tick(Clock::time_point now) {
  const bool quiet = windows_[0]->requests.total() + windows_[1]->requests.total() == 0;
  if (std::exchange(quiet_, quiet) && quiet) return Rotate(now);
  auto report = std::make_shared<HotReport>();
  for (std::size_t view = 0; view < kHotViews; ++view) {
    const auto by = static_cast<HotBy>(view);
    report->by[view] = ListOf(windows_[0]->of(by), windows_[1]->of(by), most_);
  }
  report->span = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_);
  if (now - began_ >= kWindow) Rotate(now);
  std::shared_ptr<const HotReport> next = std::move(report);  // The old one goes after the lock.
  const std::lock_guard lock(mutex_);
  published_.swap(next);
}

std::shared_ptr<const HotReport> HotKeys::Published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

}  // namespace tidegate
