// convert: opens, selects, renames and casts; then makes a plan and carries it out.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/gguf_model.hpp>
#include <ballast/manifest.hpp>
#include <ballast/save.hpp>

#include "../beside.hpp"
#include "../remedies.hpp"
#include "../save_job.hpp"
#include "convert_changes.hpp"
#include "verbs.hpp"

namespace ballast::cli {
namespace {

constexpr std::string_view kSchema = "ballast.convert/1";

// All of a checkpoint is often the model, under a name of its own.
void suggest_root(const Session& session, const Checkpoint& checkpoint) {
  if (checkpoint.roots.empty() || checkpoint.roots[0].tensors != checkpoint.size()) return;
  const std::string& root = checkpoint.roots[0].path;
  session.note(worded(fmt::format("all tensors lie under \"{}\"; {} takes them without that prefix", root,
                                  Advice::mention(Remedy::root, root))));
}

void say_what_is_missing(const Session& session, const ConvertFlags& flags, const Checkpoint& checkpoint) {
  if (!flags.keep_values || !checkpoint.values.empty()) return;
  session.note("--keep-values: nothing stands beside the tensors" +
               (session.root.empty() ? std::string() : fmt::format(" below \"{}\"", session.root)));
}

// Without its configuration, nobody can load such a model.
void say_quantization_config(const Session& session, const ConvertFlags& flags, const Checkpoint& checkpoint,
                             const SavePlan& plan) {
  if (flags.quantize.empty()) return;
  const auto is_config = [](const SavePlan::File& file) {
    return std::filesystem::path(file.path).filename() == "config.json";
  };
  if (std::ranges::any_of(plan.files, is_config)) return;
  session.note(fmt::format("the config.json of this model needs \"quantization_config\": {}",
                           to_string(checkpoint.quantization->config)));
}

// The manifest is written last, and would overwrite the file that it describes.
void check_manifest_path(const Session& session, const Checkpoint& checkpoint, const SavePlan& plan,
                         const std::string& manifest) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path own = fs::weakly_canonical(manifest, ignored);
  const auto refuse = [&](const std::string& path) {
    if (fs::weakly_canonical(path, ignored) == own)
      throw Error(Errc::invalid_argument, "the manifest and the checkpoint are the same file")
          .in(path)
          .hint("give --manifest a name of its own");
  };
  for (const auto& file : plan.files) refuse(file.path);
  for (const auto& file : checkpoint.files) refuse(file.path);
  refuse_existing(session, manifest);
}

SavePlan plan_output(const Session& session, const ConvertFlags& flags, Converted& converted, SaveOptions options,
                     bool takes_files_along) {
  auto bar = session.progress_bar();  // compressing is measured while planning
  options.progress = bar.callback();
  SavePlan plan = plan_save(converted.checkpoint, flags.out, options);
  add_model_config(plan, std::move(converted.config));
  if (takes_files_along) take_sidecars(session, plan, converted.opened, converted.checkpoint, flags.dry_run);
  return plan;
}

void show(Session& session, const ConvertFlags& flags, const SavePlan& plan) {
  say_notes(session, plan.notes);
  if (!session.json && flags.out.ends_with(".gguf")) show_types(session, plan);
  show_plan(session, kSchema, plan);
}

void carry_out(Session& session, const ConvertFlags& flags, const Checkpoint& checkpoint, const SavePlan& plan,
               SaveOptions options) {
  if (!flags.manifest.empty()) check_manifest_path(session, checkpoint, plan, flags.manifest);
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  OutputFolder folder(session, flags.out);
  const SaveReport report = execute(plan, options);
  folder.keep();
  if (!flags.manifest.empty()) {
    const ManifestOptions manifest_options{options.threads, options.progress, options.limits, session.team};
    save_manifest(make_manifest(checkpoint, report.digests, manifest_options), flags.manifest, options);
  }
  bar.clear();
  say_notes(session, report.notes);
  say_written(session, kSchema, plan, report);
}

int run_convert(Session& session, const ConvertFlags& flags) {
  if (flags.out == "-") {
    throw Error(Errc::invalid_argument, "a checkpoint cannot be written to standard output")
        .hint("name a file or a folder; " + Advice::mention(Remedy::cat) + " streams one tensor");
  }
  const SaveOptions options = save_options(session, flags);
  const bool takes_files_along = !flags.no_sidecars && takes_sidecars(flags.out, options);
  Converted result = converted(session, flags, takes_files_along);
  suggest_root(session, result.checkpoint);
  say_what_is_missing(session, flags, result.checkpoint);
  const SavePlan plan = plan_output(session, flags, result, options, takes_files_along);
  say_quantization_config(session, flags, result.checkpoint, plan);
  flags.dry_run ? show(session, flags, plan) : carry_out(session, flags, result.checkpoint, plan, options);
  return 0;
}

}  // namespace

void add_convert(Command& verb, Session& session) {
  auto flags = std::make_shared<ConvertFlags>();
  add_convert_options(verb, session, *flags);
  verb.examples = R"(  ballast convert model/ one.safetensors
  ballast convert model.safetensors half/ --dtype BF16 --max-shard-size 5GB
  ballast convert Llama-3.2-1B/ model.gguf --type Q4_K_M
)";
  verb.run = [flags, &session] { return run_convert(session, *flags); };
}

}  // namespace ballast::cli
