// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "redis/model.hpp"
#include "redis/redis_server.hpp"

/// These functions write a stored state as text, from the model and from the replies of Redis, so
/// that the texts can be compared.
namespace tidegate::redis_test {

/// Returns the field without which, or with a word in which, a hash is unreadable.
inline const char* FieldOf(Algorithm algorithm) {
  return algorithm == Algorithm::kTokenBucket ? "last_refill"
         : algorithm == Algorithm::kGcra      ? "tat"
                                              : "start";
}
inline const char* CounterOf(Algorithm algorithm) {
  return algorithm == Algorithm::kTokenBucket   ? "tokens"
         : algorithm == Algorithm::kGcra        ? "owed"
         : algorithm == Algorithm::kFixedWindow ? "count"
                                                : "current";
}

inline std::string TimeAndRest(std::int64_t time, std::int64_t rest) {
  return std::to_string(time) + (rest == 0 ? "" : ":" + std::to_string(rest));
}

inline std::string StoredText(const Stored& s) {
  if (!s.exists) return "";
  const std::string expires = " expires " + std::to_string(s.expires);
  switch (s.algorithm) {
    case Algorithm::kTokenBucket:
      return "tokens " + std::to_string(s.hash[0]) + " last_refill " +
             TimeAndRest(s.hash[1], s.hash[2]) + expires;
    case Algorithm::kGcra:
      return "tat " + TimeAndRest(s.hash[0], s.hash[1]) + " owed " + std::to_string(s.hash[2]) +
             expires;
    case Algorithm::kFixedWindow:
      return "start " + std::to_string(s.hash[0]) + " count " + std::to_string(s.hash[1]) + expires;
    case Algorithm::kSlidingWindow:
      return "start " + std::to_string(s.hash[0]) + " current " + std::to_string(s.hash[1]) +
             " previous " + std::to_string(s.hash[2]) + expires;
    case Algorithm::kSlidingLog: {
      std::string text;
      for (const auto& entry : s.log) {
        text += std::to_string(entry.units) + "@" +
                std::to_string(entry.at.time_since_epoch().count()) + " ";
      }
      return text;
    }
    case Algorithm::kConcurrency: {
      std::set<std::string> leases;
      for (const auto& lease : s.leases) {
        leases.insert(std::to_string(lease.id.low) + ":" + std::to_string(lease.units) + "@" +
                      std::to_string(lease.expiry.time_since_epoch().count()) + " ");
      }
      std::string text;
      for (const std::string& lease : leases) text += lease;
      return text;
    }
  }
  return "";
}

/// Returns the name-value pairs of a reply; empty if the reply is not an array.
inline std::map<std::string, std::string> Pairs(const Reply& reply) {
  std::map<std::string, std::string> pairs;
  if (!reply || reply->type != REDIS_REPLY_ARRAY) return pairs;
  for (std::size_t i = 0; i + 1 < reply->elements; i += 2) {
    pairs[{reply->element[i]->str, reply->element[i]->len}] = {reply->element[i + 1]->str,
                                                               reply->element[i + 1]->len};
  }
  return pairs;
}

inline std::string HashText(const Reply& reply, Algorithm algorithm) {
  auto fields = Pairs(reply);
  if (fields.empty()) return "";
  std::string text;
  const auto add = [&](const char* name) {
    text += (text.empty() ? "" : " ") + std::string(name) + " " + fields[name];
  };
  if (algorithm == Algorithm::kTokenBucket) {
    add("tokens");
    add("last_refill");
  } else if (algorithm == Algorithm::kGcra) {
    if (!fields.contains("owed")) fields["owed"] = "0";
    add("tat");
    add("owed");
  } else {
    add("start");
    if (algorithm == Algorithm::kFixedWindow) {
      add("count");
    } else {
      add("current");
      add("previous");
    }
  }
  if (fields["expires"].find_first_not_of("0123456789") != std::string::npos) {
    fields["expires"] = "-1";
  }
  add("expires");
  return text;
}

/// Returns the entries of a log in their order; marks a total that is not the sum of the units so
/// far.
inline std::string LogText(const Reply& reply) {
  std::string text;
  std::int64_t before = -1;
  for (std::size_t i = 0; reply && i + 1 < reply->elements; i += 2) {
    char* rest = nullptr;
    const std::int64_t units = std::strtoll(reply->element[i]->str, &rest, 10);
    const std::int64_t total = *rest == ':' ? std::strtoll(rest + 1, nullptr, 10) : -1;
    if (before >= 0 && total != before + units) text += "(wrong total) ";
    before = total;
    text += std::to_string(units) + "@" + reply->element[i + 1]->str + " ";
  }
  return text;
}

/// Returns the leases with their units; marks a wrong sum, and a `#` member without its lease.
inline std::string LeasesText(const Reply& reply) {
  auto members = Pairs(reply);
  std::set<std::string> leases;
  std::int64_t extra = 0;
  for (const auto& [member, score] : members) {
    if (member.starts_with('#')) {
      if (member.size() > 1 && !members.contains(member.substr(1)))
        leases.insert("(lost " + member + ") ");
      continue;
    }
    const auto more = members.find("#" + member);
    const std::int64_t units = more == members.end() ? 1 : 1 - std::stoll(more->second);
    extra += units - 1;
    leases.insert(std::to_string(LeaseOf(member).low) + ":" + std::to_string(units) + "@" + score +
                  " ");
  }
  const auto sum = members.find("#");
  if ((sum == members.end() ? 0 : -std::stoll(sum->second)) != extra) leases.insert("(wrong sum) ");
  std::string text;
  for (const std::string& lease : leases) text += lease;
  return text;
}

}  // namespace tidegate::redis_test
