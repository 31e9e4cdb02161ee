#include <ballast/error.hpp>
#include <ballast/save.hpp>

#include <fmt/format.h>

#include <filesystem>

#include "checkpoint/aliases.hpp"
#include "checkpoint/composites.hpp"
#include "checkpoint/ggml_blocks.hpp"
#include "core/text.hpp"
#include "save/engine.hpp"
#include "save/plan.hpp"

namespace ballast {
namespace {

// Nothing of it would get into the output. But a file that means harm is not to be laundered by accident.
void refuse_dangerous(const Checkpoint& checkpoint) {
  if (checkpoint.dangerous.empty()) return;
  const Global& global = checkpoint.dangerous.front();
  std::string what = "names " + quote(global.module + "." + global.name);
  if (!global.why.empty()) what += ", which " + std::string(global.why);
  if (checkpoint.dangerous.size() > 1)
    what += fmt::format(", and {} more that is dangerous", checkpoint.dangerous.size() - 1);
  throw Error(Errc::unsafe, what)
      .in(global.member.empty() ? checkpoint.target : checkpoint.target + "!/" + global.member)
      .at_byte(global.offset)
      .hint("ballast scan shows all of it; --allow-dangerous takes the tensors all the same, and runs nothing");
}

void refuse_to_overwrite(const SavePlan& plan) {
  for (const SavePlan::File& file : plan.files) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file.path, ignored))) continue;
    throw Error(Errc::invalid_argument, "already exists").in(file.path).hint("--force overwrites it");
  }
}

}  // namespace

SavePlan plan_save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  if (!options.allow_dangerous) refuse_dangerous(checkpoint);
  if (format_for(path) == Format::gguf) return plan_files(for_gguf(checkpoint), path, options);
  // A torch file has tensors that share bytes, safetensors an agreement about names.
  if (format_for(path) != Format::safetensors) return plan_files(checkpoint, path, options);
  return plan_files(
      fold_composites(fold_aliases(options.raw_blocks ? fold_ggml_blocks(checkpoint) : for_safetensors(checkpoint))),
      path, options);
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
