// SPDX-License-Identifier: Apache-2.0
#include "telemetry/process_metrics.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <limits>
#include <string>

namespace tidegate {
namespace {

using Type = MetricFamily::Type;

double OpenDescriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -3;  // Itself and the two dots.
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

/// Seconds since the epoch; 0: the system does not tell.
double StartTime() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  // The second field is the program's name in brackets, which may hold anything; the start, in
  // ticks since the machine's, is the 22nd.
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

std::vector<MetricFamily> ProcessMetrics() {
  // Once: it does not change, but what it is computed from does, by some microseconds.
  static const double start_time = StartTime();
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::vector<MetricFamily> families;
  const auto add = [&](std::string_view name, std::string_view help, Type type, double value) {
    families.push_back({name, help, type, {{value}}});
  };
  add("process_cpu_seconds_total", "User and system CPU time.", Type::kCounter, CpuSeconds());
  add("process_resident_memory_bytes", "Resident memory.", Type::kGauge,
      static_cast<double>(resident) * page);
  add("process_virtual_memory_bytes", "Virtual memory.", Type::kGauge,
      static_cast<double>(pages) * page);
  add("process_open_fds", "Open descriptors.", Type::kGauge, OpenDescriptors());
  add("process_max_fds", "As many descriptors as it may open.", Type::kGauge, MostDescriptors());
  if (start_time > 0) {
    add("process_start_time_seconds", "When it was started, since the epoch.", Type::kGauge,
        start_time);
  }
  return families;
}

}  // namespace tidegate
