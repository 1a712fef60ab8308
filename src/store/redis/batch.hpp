// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/outcome.hpp"
#include "store/call.hpp"
#include "store/fingerprint.hpp"
#include "store/redis/key_names.hpp"

namespace tidegate::redis {

/// Finds the numbers of keys or entries by a hash. While there are few, all are compared and
/// nothing is stored: on a cluster most batches have one.
class PlaceIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// REQUIRES: a power of two, more than there will be numbers.
  explicit PlaceIndex(std::size_t places) noexcept : most_(places) {}

  /// Returns the one of the first `count` numbers for which `is(number)` is true, or kNone.
  template <class Is>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, std::size_t count, Is is) const {
    if (places_.empty()) {
      for (std::uint32_t number = 0; number < count; ++number) {
        if (is(number)) return number;
      }
      return kNone;
    }
    for (std::size_t at = hash & (most_ - 1); places_[at] != 0; at = (at + 1) & (most_ - 1)) {
      const std::uint32_t number = places_[at] - 1u;
      if (is(number)) return number;
    }
    return kNone;
  }

  /// Adds the next number. `hash_of(number)` returns the hash of this or an earlier one.
  template <class HashOf>
  void Add(std::uint32_t number, HashOf hash_of) {
    if (!places_.empty()) return Put(hash_of(number), number);
    if (number < kFew) return;
    places_.resize(most_);
    for (std::uint32_t each = 0; each <= number; ++each) Put(hash_of(each), each);
  }
  void Clear() noexcept { places_.clear(); }

 private:
  static constexpr std::uint32_t kFew = 8;

  void Put(std::uint64_t hash, std::uint32_t number) noexcept {
    std::size_t at = hash & (most_ - 1);
    while (places_[at] != 0) at = (at + 1) & (most_ - 1);
    places_[at] = static_cast<std::uint16_t>(number + 1);
  }

  std::size_t most_;
  std::vector<std::uint16_t> places_;  ///< Number + 1; empty: few of them.
};

/// Calls that are sent to Redis together, as one run of the script; docs/adr/0013 has the format.
/// No I/O. Equal calls share an entry with a count, and each key is named once. In a cluster all
/// keys are of one slot. Used again and again: nothing is allocated once it has grown.
class Batch {
 public:
  /// A larger batch would block Redis for other clients for more than half a millisecond.
  static constexpr std::size_t kMostEntries = 128;
  static constexpr std::size_t kMostKeys = 512;

  Batch(const KeyNames& names, const Fingerprinter& fingerprinter);
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// REQUIRES: cleared. `single`: takes one entry only, and calls equal to it.
  void Begin(Slot slot, bool single) noexcept {
    slot_ = slot;
    single_ = single;
  }
  [[nodiscard]] Slot slot() const noexcept { return slot_; }
  [[nodiscard]] bool single() const noexcept { return single_; }
  /// For an index of batches: the slot, or of a single one what its calls request. REQUIRES: not
  /// empty.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return single_ ? entries_.front().request[0] : slot_;
  }
  /// Returns true if `call` requests the same as its first entry.
  [[nodiscard]] bool Asks(const Call& call) const noexcept {
    return used_ > 0 && entries_.front().kind == Call::Kind::kApply &&
           call.kind == Call::Kind::kApply && entries_.front().request == call.record.request;
  }
  int hops = 0;         ///< How often it was redirected.
  int delays = 0;       ///< How often it has waited for its slot to be served.
  bool asking = false;  ///< Its slot is moving to the node that it is sent to: send ASKING first.

  [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }  ///< Calls.
  [[nodiscard]] std::size_t entries() const noexcept { return used_; }
  [[nodiscard]] std::size_t keys() const noexcept { return keys_.size(); }
  /// How often it was sent. Then it takes no more calls.
  [[nodiscard]] int attempts() const noexcept { return attempts_; }
  /// Returns true if no new entry fits.
  [[nodiscard]] bool full() const noexcept {
    return used_ >= kMostEntries || keys_.size() + kMaxCharges > kMostKeys;
  }

  /// Returns false if it is full and has no equal call. REQUIRES: a checked call whose
  /// `record.request` is set.
  [[nodiscard]] bool Add(Call& call);
  /// Removes a call that waits no longer; what was sent of it stays sent.
  void Remove(Call& call) noexcept;
  void Clear() noexcept;

  /// Appends the command. `script`: its SHA-1, or its text. Only calls that still wait are charged.
  enum class Form : std::uint8_t { kSha, kText };
  void Write(std::string& out, Form form, std::string_view script, std::string_view channel);

  struct Summary {
    enum class Verdict : std::uint8_t { kGood, kBadTypes, kBadResponse };
    Verdict verdict = Verdict::kGood;
    std::int64_t repaired = 0;
    std::int64_t healed = 0;
    std::int64_t failed_writes = 0;
  };
  using Answered = std::function<void(Call&)>;
  /// Reads the script's reply, fills the calls and hands each complete one to `answered`, which may
  /// finish it. If the reply is malformed, the other calls stay. `given_back` is called for each
  /// key to which a refund or a reset of this batch gave something back, in the order of the
  /// entries: Redis published it before the reply, and so before denials in the reply are cached.
  using GivenBack = std::function<void(std::string_view key)>;
  [[nodiscard]] Summary Read(
      std::string_view packed, const Answered& answered,
      const GivenBack& given_back = [](std::string_view) {});

  /// Removes all waiting calls and hands them to `take`.
  void TakeAll(const std::function<void(Call&)>& take);

 private:
  struct Key {
    Fingerprint fingerprint;
    Algorithm algorithm;
    std::uint32_t text;  ///< Where it begins in texts_.
    std::uint32_t size;
  };
  struct Item {  ///< A charge.
    std::uint32_t key;
    std::uint32_t quota;
    std::int64_t cost;
    Mode mode;
    std::uint32_t lease;  ///< Place in leases_, from 1; 0: none.
  };
  struct Entry {
    std::array<std::uint64_t, 2> request;
    Call::Kind kind;
    std::uint32_t items;  ///< Where they begin in items_.
    std::uint32_t item_count;
    std::uint32_t of_call;      ///< The index of the only item in its call; not of kApply.
    std::uint32_t refund_key;   ///< kRefund only, as the next two; kNone: it has no id.
    std::int64_t charged_kind;  ///< 0 now, 1 so long ago, 2 at a time.
    std::int64_t charged_value;
    std::vector<Call*> waiters;  ///< nullptr: has left.
    std::size_t alive;
  };
  /// The script's outcome of a charge on a list.
  struct ListOutcome {
    std::int64_t admitted;
    Outcome look;
    bool renewed;  ///< A lease that was held before.
  };
  class Replay;

  static constexpr std::uint32_t kNone = PlaceIndex::kNone;

  [[nodiscard]] bool HasRoomFor(const Call& call) const noexcept;
  Entry& AddEntry(const Call& call);
  void Join(Entry& entry, std::uint32_t number, Call& call);
  void AddItem(Entry& entry, const Charge& charge);
  void AddRefund(Entry& entry, const Charge& charge, const RefundRequest& refund);
  /// Adds a key whose name was appended to texts_ from `begin` on.
  std::uint32_t AddKey(const Fingerprint& fingerprint, Algorithm algorithm, std::size_t begin);
  [[nodiscard]] std::uint32_t KeyOf(const Charge& charge);
  [[nodiscard]] std::uint32_t QuotaOf(const Quota& quota);
  void DropThoseWhoLeft();
  /// The script must not read keys that no entry charges.
  void DropUnusedKeys();
  void Pack();
  void PackQuota(const Quota& quota);
  void PackEntry(const Entry& entry);

  const KeyNames& names_;
  const Fingerprinter& fingerprinter_;
  std::string texts_;  ///< Of keys, one after the other.
  std::vector<Key> keys_;
  std::vector<Quota> quotas_;  ///< Copies: the caller may leave, with its rules.
  std::vector<std::string> leases_;
  std::size_t lease_count_ = 0;
  std::vector<Item> items_;
  std::vector<Entry> entries_;  ///< The first used_ of them.
  std::size_t used_ = 0;
  std::size_t waiting_ = 0;
  int attempts_ = 0;
  Slot slot_ = 0;
  bool single_ = false;
  PlaceIndex key_places_{1024};   ///< By fingerprint.
  PlaceIndex entry_places_{512};  ///< By request.
  std::vector<std::int64_t> numbers_;
  std::string packed_;
};

/// Batches to use again, of one reactor.
class BatchPool {
 public:
  BatchPool(const KeyNames& names, const Fingerprinter& fingerprinter) noexcept
      : names_(names), fingerprinter_(fingerprinter) {}

  [[nodiscard]] std::unique_ptr<Batch> New(Slot slot, bool single) {
    std::unique_ptr<Batch> batch;
    if (spare_.empty()) {
      batch = std::make_unique<Batch>(names_, fingerprinter_);
    } else {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    batch->Begin(slot, single);
    return batch;
  }
  void Give(std::unique_ptr<Batch> batch) {
    if (spare_.size() >= kKept) return;
    batch->Clear();
    spare_.push_back(std::move(batch));
  }

 private:
  /// Two rounds of a cluster's, a slot each.
  static constexpr std::size_t kKept = 2 * Batch::kMostEntries;

  const KeyNames& names_;
  const Fingerprinter& fingerprinter_;
  std::vector<std::unique_ptr<Batch>> spare_;
};

}  // namespace tidegate::redis
