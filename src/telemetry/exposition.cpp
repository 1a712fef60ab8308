// SPDX-License-Identifier: Apache-2.0
#include "telemetry/exposition.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

namespace tidegate {
namespace {

using Type = MetricFamily::Type;

void AppendLabelValue(std::string& text, std::string_view value) {
  for (const char c : value) {
    if (c == '"' || c == '\\' || c == '\n') text += '\\';
    text += c == '\n' ? 'n' : c;
  }
}

void AppendSample(std::string& text, std::string_view name, const MetricFamily::Value& sample) {
  text.append(name).append(sample.suffix);
  char before = '{';
  for (const auto& [label, value] : sample.labels) {
    text += std::exchange(before, ',');
    text.append(label).append("=\"");
    AppendLabelValue(text, value);
    text += '"';
  }
  text += sample.labels.empty() ? " " : "} ";
  text.append(NumberText(sample.value)).append("\n");
}

double OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/self/fd", error);
  if (error) return 0;
  // The descriptor of the open folder itself does not count.
  return static_cast<double>(std::distance(begin(folder), end(folder)) - 1);
}

/// Returns the time at which the process started, in seconds since the epoch; 0 if it is unknown.
double StartTime() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  // The second field is the program's name in brackets, which may contain any character. Field 22
  // is the time of the start, in ticks since the machine started.
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  const double since_boot =
      std::strtod(text.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  timespec now{};
  timespec up{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0 || clock_gettime(CLOCK_BOOTTIME, &up) != 0) return 0;
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  return seconds(now) - seconds(up) + since_boot;
}

double MostDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur == RLIM_INFINITY) return std::numeric_limits<double>::infinity();
  return static_cast<double>(limit.rlim_cur);
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::string NumberText(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string Expose(std::span<const MetricFamily> families) {
  static constexpr std::string_view kTypes[] = {" counter\n", " gauge\n", " histogram\n"};
  std::string text;
  for (const MetricFamily& family : families) {
    text.append("# HELP ").append(family.name).append(" ").append(family.help);
    text.append("\n# TYPE ").append(family.name);
    text.append(kTypes[static_cast<std::size_t>(family.type)]);
    for (const MetricFamily::Value& sample : family.values) {
      AppendSample(text, family.name, sample);
    }
  }
  return text;
}

std::vector<MetricFamily> ProcessMetrics() {
  // Computed once: the start does not change, but the clocks that it is computed from do.
  static const double start_time = StartTime();
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::vector<MetricFamily> families = {
      Counter("process_cpu_seconds_total", "User and system CPU time.", CpuSeconds()),
      Gauge("process_resident_memory_bytes", "Resident memory.",
            static_cast<double>(resident) * page),
      Gauge("process_virtual_memory_bytes", "Virtual memory.", static_cast<double>(pages) * page),
      Gauge("process_open_fds", "Open descriptors.", OpenDescriptors()),
      Gauge("process_max_fds", "The largest number of open descriptors.", MostDescriptors())};
  if (start_time > 0) {
    families.push_back(Gauge("process_start_time_seconds",
                             "Start of the process, in seconds since the epoch.", start_time));
  }
  return families;
}

}  // namespace tidegate
