#include <ballast/adapter.hpp>
#include <ballast/error.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "peft/files/dialects.hpp"
#include "peft/left_out.hpp"
#include "peft/names.hpp"

namespace ballast {
namespace {

namespace fs = std::filesystem;

SavePlan::File config_file(const AdapterConfig& config, const fs::path& path) {
  const std::string text = to_string(config);
  const auto bytes = std::as_bytes(std::span(text));
  SavePlan::File file;
  file.path = path.string();
  file.head.assign(bytes.begin(), bytes.end());
  file.size_bytes = text.size();
  return file;
}

SavePlan plan_folder(const Adapter& adapter, const fs::path& folder, const AdapterSaveOptions& options) {
  Checkpoint checkpoint;
  checkpoint.tensors = options.portable ? peft::without_prefix(adapter.tensors) : adapter.tensors;
  checkpoint.metadata = {{"format", "pt"}};
  checkpoint.files = adapter.files;
  SavePlan plan = plan_save(checkpoint, (folder / "adapter_model.safetensors").string(), options.save);
  std::ranges::move(peft::left_out_metadata(adapter, checkpoint), std::back_inserter(plan.notes));
  plan.files.push_back(config_file(adapter.config, folder / "adapter_config.json"));
  return plan;
}

void check_ending(const std::string& path, AdapterDialect dialect) {
  const std::string_view wanted = dialect == AdapterDialect::gguf ? ".gguf" : ".safetensors";
  if (path.ends_with(wanted)) return;
  throw Error(Errc::invalid_argument,
              "an adapter in the dialect " + std::string(name(dialect)) + " is a " + std::string(wanted) + " file")
      .in(path)
      .hint("give it a name that ends so");
}

}  // namespace

SavePlan plan_save(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options) {
  if (options.dialect == AdapterDialect::peft) return plan_folder(adapter, path, options);
  check_ending(path, options.dialect);
  const Checkpoint checkpoint = peft::write_dialect(adapter, options.dialect, options.names);
  SavePlan plan = plan_save(checkpoint, path, options.save);
  plan.notes.insert(plan.notes.end(), checkpoint.notes.begin(), checkpoint.notes.end());
  std::ranges::move(peft::left_out_metadata(adapter, checkpoint), std::back_inserter(plan.notes));
  if (adapter.dialect == AdapterDialect::peft)
    plan.notes.push_back({adapter.source, "the configuration is left out, but for the scaling", Note::Kind::remark});
  return plan;
}

SaveReport save_adapter(const Adapter& adapter, const std::string& path, const AdapterSaveOptions& options) {
  const SavePlan plan = plan_save(adapter, path, options);
  std::error_code ignored;  // execute() says better what is wrong with the folder
  if (options.dialect == AdapterDialect::peft) fs::create_directories(path, ignored);
  return execute(plan, options.save);
}

}  // namespace ballast
