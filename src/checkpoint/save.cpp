#include <ballast/error.hpp>
#include <ballast/save.hpp>

#include <filesystem>

#include "checkpoint/aliases.hpp"
#include "core/text.hpp"
#include "save/engine.hpp"
#include "save/plan.hpp"

namespace ballast {
namespace {

void refuse_to_overwrite(const SavePlan& plan) {
  for (const SavePlan::File& file : plan.files) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file.path, ignored))) continue;
    throw Error(Errc::invalid_argument, "already exists").in(file.path).hint("--force overwrites it");
  }
}

}  // namespace

SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const Checkpoint folded = fold_aliases(checkpoint);
  Entries entries;
  entries.reserve(folded.size());
  for (const auto& entry : folded) entries.push_back(&entry);
  return plan_files(entries, folded.metadata, path, options);
}

SaveReport execute(const SavePlan& plan, const SaveOptions& options) {
  // All of them first: the tenth shard must not be what stops a long job.
  if (!options.overwrite) refuse_to_overwrite(plan);
  return write_files(plan, options, [&](const std::string& path) {
    return io::create_file(path, {.overwrite = options.overwrite, .durable = options.durable});
  });
}

SaveReport save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  return execute(plan_save(checkpoint, path, options), options);
}

void save_npy(const Tensor& tensor, const std::string& path, const SaveOptions& options) {
  execute(plan_npy(tensor, path, options), options);
}

}  // namespace ballast
