#include "beside.hpp"

#include <algorithm>
#include <filesystem>

#include <ballast/error.hpp>
#include <ballast/sidecars.hpp>

namespace ballast::cli {
namespace {

namespace fs = std::filesystem;

bool has_nothing_visible(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (!i->path().filename().string().starts_with('.')) return false;
  }
  return !error;
}

void refuse_existing_beside(const Session& session, const SavePlan& plan) {
  if (session.force || plan.files.empty() || fs::exists(plan.files.front().path)) return;
  for (const SavePlan::File& file : plan.files) {
    if (file.tensors == 0 && !file.path.ends_with(".index.json") && fs::exists(file.path))
      throw Error(Errc::invalid_argument, "already exists")
          .in(file.path)
          .hint("--force overwrites it; --no-sidecars takes no files along");
  }
}

}  // namespace

void add_sidecars_option(Command& verb, bool& no_sidecars) {
  verb.flag("--no-sidecars", &no_sidecars,
            "from folder to folder: only the weights, and not config.json, the tokenizer and the like");
}

bool is_folder(const std::string& out) {
  std::error_code ignored;
  return out.ends_with('/') || fs::is_directory(out, ignored);
}

bool takes_sidecars(const std::string& out, const SaveOptions& options) {
  if (is_folder(out)) return true;
  const fs::path folder = fs::path(out).parent_path();
  return options.max_shard_bytes != 0 && !folder.empty() && has_nothing_visible(folder);
}

void take_sidecars(const Session& session, SavePlan& plan, const Checkpoint& opened, const Checkpoint& written,
                   bool dry_run) {
  add_sidecars(plan, find_sidecars(opened, session.open_options()), opened, written);
  if (!dry_run) refuse_existing_beside(session, plan);
}

}  // namespace ballast::cli
