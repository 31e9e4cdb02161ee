#include <ballast/error.hpp>
#include <ballast/json.hpp>
#include <ballast/remote.hpp>
#include <ballast/sidecars.hpp>
#include <ballast/text.hpp>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/links.hpp"
#include "checkpoint/recognize/shard_index.hpp"
#include "checkpoint/sidecars/names.hpp"
#include "core/json_parse.hpp"
#include "core/text.hpp"

namespace ballast {
namespace {

constexpr std::size_t kMostSidecars = 1000;
constexpr std::uint64_t kMostCodeBytes = 16'000'000;
constexpr std::string_view kCodeEnding = ".py";

bool is_module_name(std::string_view word) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !word.empty() && std::ranges::all_of(word, is_letter);
}

// "modeling_x.XForCausalLM" names modeling_x.py; "org/name--modeling_x.X" names a file of another repository.
void add_code_named(const Json& name, std::set<std::string>& files) {
  if (name.is_list()) {
    for (const Json& item : name.list()) {
      if (item.is_text()) add_code_named(item, files);
    }
  }
  if (!name.is_text()) return;
  const std::string_view text = name.text();
  const std::string_view module = text.substr(0, text.find('.'));
  if (is_module_name(module)) files.insert(std::string(module) + std::string(kCodeEnding));
}

class SidecarFinder {
 public:
  SidecarFinder(const Checkpoint& model, const OpenOptions& options)
      : model_(model), files_(options_for(model.target, options).files) {
    for (const CheckpointFile& file : model.files) own_.insert(file.path);
  }

  Sidecars find() {
    const auto listed = model_.target.empty() ? std::nullopt : files_->list(model_.target);
    if (!listed) return {};
    std::set<std::string> names(listed->begin(), listed->end()), code;
    for (const std::string& name : names) look_at(model_.target, "", name, code);
    find_code(code);
    std::ranges::sort(found_.files, {}, &Sidecar::name);
    std::ranges::sort(found_.left);
    return std::move(found_);
  }

 private:
  void look_at(const std::string& folder, const std::string& before, const std::string& name,
               std::set<std::string>& code) {
    if (name.starts_with('.')) return;
    const std::string whole = before + name;
    if (!is_basename(name)) return leave(whole, "is not the name of a file in the folder");
    const std::string path = files_->inside(folder, name);
    if (own_.contains(path) || is_index(whole)) return;
    if (whole.ends_with(kCodeEnding) && before.empty()) return code.insert(name), void();
    if (const SidecarName* row = sidecar_name(whole)) return take(whole, path, *row);
    const bool is_folder = before.empty() && files_->list(path).has_value();
    if (is_folder && is_sidecar_folder(name)) return look_into(name, path);
    found_.left.push_back(is_folder ? whole + "/" : whole);
  }

  // One level down, and no further.
  void look_into(const std::string& name, const std::string& path) {
    if (leads_out(*files_, path)) return leave(name, "is a link that leads out of the folder");
    const auto listed = files_->list(path);
    std::set<std::string> names(listed->begin(), listed->end()), no_code;
    for (const std::string& file : names) look_at(path, name + "/", file, no_code);
  }

  static bool is_index(std::string_view name) {
    return is_weights_name(name) && name.ends_with(".json") && name.find(".index.") != name.npos;
  }

  void leave(const std::string& name, const std::string& why) {
    found_.notes.push_back({name, why + ", and is not taken along", Note::Kind::remark});
  }

  void take(const std::string& name, const std::string& path, const SidecarName& row) {
    if (!files_->exists(path)) return found_.left.push_back(name);  // a folder, a broken link, a pipe
    if (leads_out(*files_, path)) return leave(name, "is a link that leads out of the folder");
    SourcePtr source = files_->open(path);
    if (source->size_bytes() > row.most_bytes)
      return leave(name, fmt::format("has {}, more than any such file of a model ({})",
                                     format_bytes(source->size_bytes()), format_bytes(row.most_bytes)));
    if (found_.files.size() == kMostSidecars) return leave(name, "is one file too many");
    if (row.kind == SidecarName::Kind::configuration) note_code(*source);
    found_.files.push_back({name, std::move(source)});
  }

  void note_code(const Source& source) {
    std::string text(static_cast<std::size_t>(source.size_bytes()), '\0');
    source.read(0, std::as_writable_bytes(std::span(text)));
    try {
      const Json config = Json::parse_python(without_byte_order_mark(text));
      const Json* named = config.find("auto_map");
      if (named == nullptr || !named->is_object()) return;
      for (const auto& [role, name] : named->members()) add_code_named(name, named_code_);
    } catch (const Error&) {
      // Whoever needs the configuration says what is wrong with it.
    }
  }

  // Code is taken only if a configuration names it: without that nobody would run it.
  void find_code(const std::set<std::string>& code) {
    std::string taken;
    for (const std::string& name : code) {
      const std::size_t before = found_.files.size();
      if (named_code_.contains(name))
        take(name, files_->inside(model_.target, name), {"", kMostCodeBytes});
      else
        found_.left.push_back(name);
      if (found_.files.size() > before) taken += (taken.empty() ? "" : ", ") + quote(name);
    }
    if (!taken.empty())
      found_.notes.push_back(
          {"", "code that the configuration names is copied as it is, and nothing of it is run: " + taken,
           Note::Kind::remark});
  }

  const Checkpoint& model_;
  FilesPtr files_;
  std::set<std::string> own_, named_code_;
  Sidecars found_;
};

}  // namespace

Sidecars find_sidecars(const Checkpoint& model, const OpenOptions& options) {
  return SidecarFinder(model, options).find();
}

}  // namespace ballast
