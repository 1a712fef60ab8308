// SPDX-License-Identifier: Apache-2.0
#include "unit/telemetry/text_format.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace tidegate::test {
namespace {

enum class Colons : bool { kNo, kYes };

bool IsName(std::string_view name, Colons colons) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::ranges::all_of(name, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
           (c == ':' && colons == Colons::kYes);
  });
}

std::optional<double> NumberOf(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

/// Removes the text before `end`, and `end`, from `rest` and returns that text; nullopt if `end` is
/// not in `rest`.
std::optional<std::string_view> TakeTo(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return {};
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return taken;
}

/// Removes a quoted value and its closing quote from `rest`, which begins after the opening quote.
/// Returns the unescaped value; nullopt if it is malformed.
std::optional<std::string> TakeValue(std::string_view& rest) {
  std::string value;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (rest.empty()) return {};
    const char escaped = rest.front();
    rest.remove_prefix(1);
    if (escaped != '\\' && escaped != '"' && escaped != 'n') return {};
    value += escaped == 'n' ? '\n' : escaped;
  }
  return {};
}

std::string KeyOf(const Sample& sample, std::string_view without = {}) {
  std::string key = sample.name;
  for (const auto& [name, value] : sample.labels) {
    if (name == without) continue;
    key.append(1, '\x01').append(name).append(1, '\x02').append(value);
  }
  return key;
}

class Reader {
 public:
  explicit Reader(MetricsText& to) : to_(to) {}

  void Line(std::string_view line) {
    line_ = line;
    if (line.starts_with("# HELP ")) return Help(line.substr(7));
    if (line.starts_with("# TYPE ")) return Type(line.substr(7));
    if (line.empty() || line.starts_with('#')) return Complain("neither a comment nor a sample");
    if (!typed_) return Complain("a sample before the TYPE of its family");
    Value(line);
  }

  void End() {
    if (!to_.families.empty() && !typed_) Complain("a HELP without its TYPE");
    for (const SampleFamily& family : to_.families) {
      line_ = family.name;
      if (family.type == "histogram") CheckHistogram(family);
    }
  }

 private:
  void Complain(std::string_view what) {
    to_.problems.push_back(std::string(what) + ": " + std::string(line_));
  }

  void Help(std::string_view rest) {
    if (!to_.families.empty() && !typed_) Complain("a HELP after a HELP");
    const auto name = TakeTo(rest, " ");
    if (!name || !IsName(*name, Colons::kYes)) return Complain("no name");
    if (rest.empty()) Complain("it says nothing");
    if (!names_.insert(std::string(*name)).second) Complain("a family that was there already");
    to_.families.push_back({std::string(*name), std::string(rest), {}, {}});
    typed_ = false;
  }

  void Type(std::string_view rest) {
    const auto name = TakeTo(rest, " ");
    if (typed_ || to_.families.empty() || !name || *name != to_.families.back().name) {
      return Complain("a TYPE that does not follow its HELP");
    }
    if (rest != "counter" && rest != "gauge" && rest != "histogram") Complain("no type of ours");
    if ((rest == "counter") != name->ends_with("_total")) Complain("counters end with _total");
    to_.families.back().type = rest;
    typed_ = true;
  }

  void Value(std::string_view line) {
    Sample sample;
    std::string_view rest = line;
    const std::size_t end = rest.find_first_of("{ ");
    if (end == std::string_view::npos) return Complain("no value");
    sample.name = rest.substr(0, end);
    const bool labelled = rest[end] == '{';
    rest.remove_prefix(end + 1);
    if (labelled && !Labels(rest, sample)) return Complain("labels that make no sense");
    const auto value = NumberOf(rest);
    if (!value) return Complain("no number");
    sample.value = *value;
    SampleFamily& family = to_.families.back();
    if (!Belongs(sample, family)) Complain("a sample of another family");
    if (family.type != "gauge" && sample.value < 0) Complain("counts below 0");
    if (!series_.insert(KeyOf(sample)).second) Complain("a series that was there already");
    family.samples.push_back(std::move(sample));
  }

  static bool Labels(std::string_view& rest, Sample& sample) {
    while (true) {
      const auto name = TakeTo(rest, "=\"");
      if (!name || !IsName(*name, Colons::kNo) || name->starts_with("__")) return false;
      auto value = TakeValue(rest);
      if (!value || !sample.labels.emplace(*name, *std::move(value)).second) return false;
      if (rest.starts_with("} ")) {
        rest.remove_prefix(2);
        return true;
      }
      if (!rest.starts_with(',')) return false;
      rest.remove_prefix(1);
    }
  }

  static bool Belongs(const Sample& sample, const SampleFamily& family) {
    if (family.type != "histogram") return sample.name == family.name;
    if (sample.name == family.name + "_bucket") return sample.labels.contains("le");
    return (sample.name == family.name + "_sum" || sample.name == family.name + "_count") &&
           !sample.labels.contains("le");
  }

  void CheckHistogram(const SampleFamily& family) {
    struct Parts {
      double le = -std::numeric_limits<double>::infinity();
      double count = 0;
      int sums = 0;
      std::optional<double> total;
    };
    std::map<std::string, Parts> by_labels;
    const auto parts_of = [&](const Sample& sample) -> Parts& {
      Sample bare = sample;
      bare.name.clear();
      return by_labels[KeyOf(bare, "le")];
    };
    for (const Sample& sample : family.samples) {
      Parts& parts = parts_of(sample);
      if (sample.name.ends_with("_sum")) ++parts.sums;
      if (sample.name.ends_with("_count")) parts.total = sample.value;
      if (!sample.name.ends_with("_bucket")) continue;
      const auto le = NumberOf(sample.labels.at("le"));
      if (!le || *le <= parts.le) return Complain("buckets that do not rise");
      if (sample.value < parts.count) Complain("buckets that are not cumulative");
      parts.le = *le;
      parts.count = sample.value;
    }
    for (const auto& [labels, parts] : by_labels) {
      if (!std::isinf(parts.le)) Complain("a histogram without +Inf");
      if (parts.sums != 1 || parts.total != parts.count) Complain("a sum or count that is wrong");
    }
  }

  MetricsText& to_;
  std::string_view line_;
  bool typed_ = false;
  std::set<std::string> names_;
  std::set<std::string> series_;
};

}  // namespace

MetricsText MetricsText::Read(std::string_view text) {
  MetricsText result;
  Reader reader(result);
  if (!text.ends_with('\n')) result.problems.emplace_back("the last line does not end");
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.Line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  reader.End();
  return result;
}

const SampleFamily* MetricsText::Find(std::string_view name) const {
  const auto found = std::ranges::find(families, name, &SampleFamily::name);
  return found == families.end() ? nullptr : &*found;
}

std::string MetricsText::Complaint() const {
  std::string all;
  for (const std::string& problem : problems) all += problem + '\n';
  return all;
}

}  // namespace tidegate::test
