// SPDX-License-Identifier: Apache-2.0
#include "server/config_watch.hpp"

#include <sys/inotify.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <filesystem>
#include <string>
#include <utility>

namespace tidegate {
namespace {

namespace fs = std::filesystem;
using boost::system::error_code;

constexpr int kMaxLinks = 16;
constexpr auto kQuiet = std::chrono::milliseconds{100};
constexpr auto kLatest = std::chrono::seconds{1};

/// Adds every folder in which a change can change the file that the path `file` resolves to.
void AddFoldersOf(const std::string& file, std::vector<fs::path>& folders) {
  std::error_code error;
  fs::path path = fs::absolute(file, error);
  for (int links = 0; links < kMaxLinks; ++links) {
    // A folder on the path may be a link too, as `..data` in a mounted configuration folder.
    fs::path prefix;
    bool followed = false;
    for (const fs::path& part : path) {
      const fs::path parent = prefix;
      prefix /= part;
      if (!fs::is_symlink(fs::symlink_status(prefix, error))) continue;
      folders.push_back(parent);
      const fs::path target = fs::read_symlink(prefix, error);
      if (error) break;
      fs::path rest = path.lexically_relative(prefix);
      fs::path next = target.is_absolute() ? target : parent / target;
      path = (rest == "." ? next : next / rest).lexically_normal();
      followed = true;
      break;
    }
    if (!followed) break;
  }
  path = path.parent_path();
  while (!fs::is_directory(path, error) && path.has_relative_path()) path = path.parent_path();
  folders.push_back(path);
}

std::vector<fs::path> FoldersOf(const std::vector<FileSeen>& files) {
  std::vector<fs::path> folders;
  for (const FileSeen& file : files) AddFoldersOf(file.path, folders);
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

}  // namespace

ConfigWatch::ConfigWatch(boost::asio::io_context& context, std::vector<FileSeen> files,
                         std::function<void()> changed)
    : files_(std::move(files)), changed_(std::move(changed)), events_(context), quiet_(context) {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return;  // Reloads by signal still work.
  events_.assign(descriptor);
  Wait();
  WatchOthers();
}

ConfigWatch::~ConfigWatch() = default;

void ConfigWatch::Follow(std::vector<FileSeen> files) {
  const bool same = std::ranges::equal(files, files_, {}, &FileSeen::path, &FileSeen::path);
  files_ = std::move(files);
  if (!same) WatchOthers();
}

void ConfigWatch::FollowAlso(const std::vector<FileSeen>& files) {
  const std::size_t before = files_.size();
  for (const FileSeen& file : files) {
    const auto known = std::ranges::find(files_, file.path, &FileSeen::path);
    if (known == files_.end()) {
      files_.push_back(file);
    } else {
      *known = file;  // The callback was called for this content already.
    }
  }
  if (files_.size() > before) WatchOthers();
}

void ConfigWatch::WatchOthers() {
  if (!events_.is_open()) return;
  WatchFolders();
  OnEvent();  // A file may have changed after it was read and before it was watched.
}

void ConfigWatch::WatchFolders() {
  const int descriptor = events_.native_handle();
  std::vector<int> now;
  for (const fs::path& folder : FoldersOf(files_)) {
    // IN_ATTRIB: a key may be written first and made readable afterwards.
    const int watch = inotify_add_watch(descriptor, folder.c_str(),
                                        IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_DELETE |
                                            IN_ATTRIB | IN_MOVE_SELF | IN_ONLYDIR);
    if (watch >= 0) now.push_back(watch);
  }
  for (const int old : watches_) {
    if (std::ranges::find(now, old) == now.end()) inotify_rm_watch(descriptor, old);
  }
  watches_ = std::move(now);
}

void ConfigWatch::Wait() {
  events_.async_read_some(boost::asio::buffer(buffer_),
                          [this](const error_code& error, std::size_t) {
                            if (error) return;
                            OnEvent();
                            Wait();
                          });
}

void ConfigWatch::OnEvent() {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(waiting_, true)) latest_ = now + kLatest;
  quiet_.expires_at(std::min(now + kQuiet, latest_));
  quiet_.async_wait([this](const error_code& disturbed) {
    if (disturbed) return;
    waiting_ = false;
    Check();
  });
}

void ConfigWatch::Check() {
  WatchFolders();
  bool changed = false;
  for (FileSeen& file : files_) {
    const ContentDigest now = CurrentDigest(file);
    // A file that is being replaced may be absent for a moment: not a change yet.
    if (now.none() || now == file.content) continue;
    file.content = now;
    changed = true;
  }
  if (changed) changed_();
}

}  // namespace tidegate
