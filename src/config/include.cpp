// SPDX-License-Identifier: Apache-2.0
// include: configurations of several files.
#include <algorithm>
#include <array>
#include <expected>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ascii.hpp"
#include "base/message_text.hpp"
#include "config/files.hpp"
#include "config/sections.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 1'000;
constexpr int kMaxIncludeDepth = 8;
constexpr std::string_view kIncludeKey = "include";
constexpr std::array<std::string_view, 4> kListSections = {"rules", "routes", "deny", "exempt"};
constexpr std::string_view kMapSection = "upstreams";

/// Returns a regular file's content, but of a longer file only `max_bytes` + 1 bytes.
std::expected<std::string, std::string> ReadIncluded(const std::string& path,
                                                     std::size_t max_bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return std::unexpected("there is no file " + Backticked(path));
  }
  if (error) return std::unexpected(Backticked(path) + " cannot be read: " + error.message());
  if (fs::is_directory(status)) {
    return std::unexpected(Backticked(path) +
                           " is a folder; for its files write a pattern, as in " +
                           Backticked((fs::path{path} / "*.yaml").string()));
  }
  if (!fs::is_regular_file(status)) {  // A pipe would block.
    return std::unexpected(Backticked(path) + " is not a regular file");
  }
  auto text = ReadFileUpTo(path, max_bytes);
  if (!text) return std::unexpected(Backticked(path) + " cannot be read: " + text.error());
  return text;
}

/// Returns the absolute path without symbolic links, so that two names of one file compare equal.
std::string ResolvedPath(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

class IncludeReader {
 public:
  IncludeReader(const MainFile& main, ReadContext& context) : main_(main), context_(context) {}

  ConfigDocument Read() {
    auto parsed = ParseYaml(main_.yaml);
    if (!parsed) {
      context_.Add(Problem::Severity::kError, parsed.error().at, {}, parsed.error().message);
      return std::move(document_);
    }
    bytes_ = main_.yaml.size();
    const File file{.canonical = main_.path.empty() ? std::string{} : ResolvedPath(main_.path),
                    .shown = main_.path.empty() ? "the main file" : main_.path,
                    .folder = context_.folder()};
    Add(*std::move(parsed), file);
    if (!context_.has_errors()) document_.root = Merge();
    return std::move(document_);
  }

 private:
  /// A file that is being read, and the one that includes it.
  struct File {
    std::string canonical;
    std::string shown;
    std::string folder;
    int depth = 0;
    const File* by = nullptr;
  };

  void Stop(const ConfigValue& item, std::string_view message) {
    item.Error(message);
    stopped_ = true;
  }

  /// Adds a parsed file, and then those that it includes.
  void Add(YamlDocument parsed, const File& file) {
    const YamlNode& root = *document_.files.emplace_back(std::move(parsed)).root;
    nodes_ += root.size;
    if (root.kind != YamlNode::Kind::kMap) return;
    const YamlNode* first = nullptr;
    for (std::size_t i = 0; i + 1 < root.children.size(); i += 2) {
      const YamlNode& key = *root.children[i];
      if (key.text != kIncludeKey) continue;
      if (first != nullptr) {
        context_.Add(Problem::Severity::kError, key.at, {},
                     "the key `include` is repeated, first on " + LineOf(first->at, key.at));
        continue;
      }
      first = &key;
      const ConfigValue value(context_, *root.children[i + 1], std::string{kIncludeKey});
      value.EachItemOrOne("includes nothing; leave the key out, or name a file",
                          [&](const ConfigValue& item) { Include(item, file); });
    }
  }

  /// Includes one file, or the files that match a pattern.
  void Include(const ConfigValue& item, const File& by) {
    if (stopped_) return;
    const auto text = item.Text("a file or a pattern, as in `rules/*.yaml`");
    if (!text) return;
    if (text->empty() || std::ranges::any_of(*text, IsControl)) {
      return item.Error("should be a file or a pattern, as in `rules/*.yaml`");
    }
    if (main_.includes == Includes::kRefuse) return item.Error("no file can be included here");
    if (!IsFilePattern(*text)) {
      return IncludeFile(item, (fs::path{by.folder} / *text).lexically_normal().string(), by);
    }
    const std::string pattern =
        (fs::path{EscapedFilePattern(by.folder)} / *text).lexically_normal().string();
    const auto files = FilesMatching(pattern);
    context_.NoteFile({.path = pattern,
                       .content = DigestOfNames(files ? *files : std::vector<std::string>{}),
                       .is_pattern = true});
    if (!files) return item.Error(files.error());
    if (files->empty()) return item.Warning("no file matches this pattern");
    for (const std::string& path : *files) {
      if (!stopped_) IncludeFile(item, path, by);
    }
  }

  void IncludeFile(const ConfigValue& item, const std::string& path, const File& by) {
    if (std::ranges::any_of(path, IsControl)) {
      return item.Error("the name of a file has control characters");
    }
    const File file{.canonical = ResolvedPath(path),
                    .shown = path,
                    .folder = FolderOfFile(path),
                    .depth = by.depth + 1,
                    .by = &by};
    if (!CheckPlace(item, file)) return;
    if (document_.files.size() > kMaxFiles) return Stop(item, "more than 1,000 files are included");
    const auto text = ReadIncluded(path, kMaxYamlBytes - bytes_);
    context_.NoteFile({.path = path, .content = text ? DigestOf(*text) : ContentDigest{}});
    if (!text) return item.Error(text.error());
    if (text->size() > kMaxYamlBytes - bytes_) {
      return Stop(item, "the configuration and its included files are larger than 16 MiB");
    }
    bytes_ += text->size();
    auto parsed = ParseYaml(*text, SourceFile(path, static_cast<int>(document_.files.size())));
    if (!parsed) {
      const Problem& problem = parsed.error();
      return context_.Add(Problem::Severity::kError, problem.at, {}, problem.message);
    }
    if (nodes_ + parsed->root->size > kMaxYamlNodes) {
      return Stop(item, "the configuration and its included files have more than 1,000,000 values");
    }
    if (parsed->root->kind != YamlNode::Kind::kMap) {
      return context_.Add(Problem::Severity::kError, parsed->root->at, {},
                          "an included file should be a map with keys such as `rules`");
    }
    Add(*std::move(parsed), file);
  }

  /// Returns false, with an error, if the file includes itself, is included twice or too deep.
  bool CheckPlace(const ConfigValue& item, const File& file) {
    for (const File* outer = file.by; outer != nullptr; outer = outer->by) {
      if (outer->canonical != file.canonical) continue;
      item.Error("a file cannot include itself: " + Chain(file));
      return false;
    }
    if (file.depth > kMaxIncludeDepth) {
      item.Error("files include each other more than 8 levels deep: " + Chain(file));
      return false;
    }
    const auto [first, fresh] = included_.emplace(file.canonical, item.at());
    if (fresh) return true;
    item.Error(Backticked(file.shown) + " is included twice, first on " +
               LineOf(first->second, item.at()));
    return false;
  }

  /// Returns the chain of inclusions: `tidegate.yaml -> a.yaml -> b.yaml`.
  static std::string Chain(const File& file) {
    return file.by == nullptr ? file.shown : Chain(*file.by) + " -> " + file.shown;
  }

  const YamlNode* Merge() {
    const YamlNode* const main = document_.files.front().root;
    if (document_.files.size() == 1) return main;
    YamlNode& root = document_.merged.emplace_back(*main);
    root.children.clear();
    root.size = nodes_;
    std::unordered_map<std::string_view, Section> sections;
    for (const YamlDocument& file : document_.files) {
      const std::vector<const YamlNode*>& children = file.root->children;
      for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
        const std::string_view key = children[i]->text;
        if (key == kIncludeKey) continue;
        const YamlNode* value = children[i + 1];
        // The reader of sections reports a section that is twice in one file.
        if (IsConcatenated(key) && std::exchange(sections[key].last, &file) != &file) {
          Section& section = sections[key];
          if (section.all != nullptr) {
            Append(key, *value, section);
            continue;
          }
          value = section.all = &document_.merged.emplace_back(*value);
        }
        root.children.push_back(children[i]);
        root.children.push_back(value);
      }
    }
    return &root;
  }

  /// A section that several files may have.
  struct Section {
    const YamlDocument* last = nullptr;  ///< The last file that has it.
    YamlNode* all = nullptr;             ///< The entries of all files so far.
  };

  static bool IsConcatenated(std::string_view key) noexcept {
    return key == kMapSection || std::ranges::find(kListSections, key) != kListSections.end();
  }

  /// Appends the entries of another file. Reports parts that are not of the section's kind.
  void Append(std::string_view key, const YamlNode& part, Section& section) {
    const auto kind = key == kMapSection ? YamlNode::Kind::kMap : YamlNode::Kind::kList;
    const auto report = [&](const YamlNode& node) {
      ConfigValue(context_, node, std::string{key})
          .WrongType(kind == YamlNode::Kind::kMap ? "a map" : "a list");
    };
    YamlNode& all = *section.all;
    if (all.kind != kind) {
      report(all);
      all.kind = kind;
      all.children.clear();
    }
    if (part.kind != kind) return report(part);
    all.children.insert(all.children.end(), part.children.begin(), part.children.end());
    all.size += part.size;
  }

  const MainFile& main_;
  ReadContext& context_;
  ConfigDocument document_;
  std::unordered_map<std::string, Position> included_;  ///< Where each file was included.
  std::size_t bytes_ = 0;
  std::int64_t nodes_ = 0;
  bool stopped_ = false;
};

}  // namespace

ConfigDocument ReadConfigDocument(const MainFile& main, ReadContext& context) {
  return IncludeReader(main, context).Read();
}

}  // namespace tidegate
