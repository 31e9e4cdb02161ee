#include "save_job.hpp"

#include <cerrno>
#include <map>

#include <fmt/format.h>
#include <ballast/error.hpp>
#include <ballast/provenance.hpp>
#include <ballast/text.hpp>

#include "table.hpp"

namespace ballast::cli {
namespace {

std::uint64_t tensors_in(const SavePlan& plan) {
  std::uint64_t count = 0;
  for (const auto& file : plan.files) count += file.tensors;
  return count;
}

// Writes for each tensor its type, its source, its destination and the steps between them.
void write_items(JsonWriter& json, const SavePlan& plan) {
  json.key("plan");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& file : plan.files) {
    if (file.tensors == 0) continue;  // a file that lay beside the weights
    for (const auto& item : file.items) {
      const Provenance origin = provenance(item.tensor);
      json.begin_object();
      json.field("name", item.name);
      json.field("dtype", name(item.tensor.dtype()));
      json.array_field("shape", item.tensor.shape());
      json.field("bytes", item.tensor.nbytes());
      json.field("file", file.path);
      json.field("offset", item.offset);
      if (origin.from.empty()) {
        json.field("from", nullptr);
      } else {
        json.key("from");
        json.begin_object();
        json.field("file", origin.from.front().file);
        json.field("offset", origin.from.front().offset);
        json.end();
      }
      json.key("steps");
      json.begin_array();
      for (const std::string& step : origin.steps) json.value(step);
      json.end();
      json.end();
    }
  }
  json.end();
}

// Writes the values that are too large for the dtypes of the file.
void write_overflows(JsonWriter& json, const SaveReport& report) {
  json.key("overflows");
  json.begin_array(JsonWriter::Layout::lines);
  for (const TensorOverflows& tensor : report.overflows) {
    json.begin_object();
    json.field("name", tensor.name);
    json.field("dtype", name(tensor.dtype));
    json.field("values", tensor.overflows.count);
    json.field("largest", tensor.overflows.largest);
    json.end();
  }
  json.end();
}

void write_json(Session& session, std::string_view schema, const SavePlan& plan, const SaveReport* report) {
  JsonWriter json(session.out, schema);
  json.field("dry_run", report == nullptr);
  json.key("files");
  json.begin_array(JsonWriter::Layout::lines);
  for (const auto& file : plan.files) {
    json.begin_object();
    json.field("path", file.path);
    json.field("bytes", file.size_bytes);
    json.field("tensors", file.tensors);
    json.end();
  }
  json.end();
  json.field("tensors", tensors_in(plan));
  json.field("data_bytes", plan.data_bytes);
  json.field("total_bytes", plan.total_bytes());
  json.field("memory_bytes", plan.memory_bytes);
  if (report == nullptr) write_items(json, plan);
  if (report != nullptr) {
    json.field("files_kept", report->files_kept);
    write_overflows(json, *report);
    json.field("seconds", report->seconds);
  }
  json.finish();
}

// "cast to BF16 ×120, gather ×3": each step, and the number of tensors that it is for.
std::string steps_text(const SavePlan& plan) {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& file : plan.files) {
    for (const auto& item : file.items) {
      for (const std::string& step : provenance(item.tensor).steps) ++counts[step];
    }
  }
  std::string text;
  for (const auto& [step, count] : counts)
    text += fmt::format("{}{} ×{}", text.empty() ? "" : ", ", step, format_count(count));
  return text;
}

// What a file without tensors is.
std::string kind_of(std::string_view path) {
  if (path.ends_with(".index.json")) return "index";
  if (path.ends_with("config.json")) return "configuration";
  return "beside the weights";
}

void write_plan(Session& session, const SavePlan& plan) {
  Table table(session.out, session.screen, {{}, {.right = true, .drop = 1}, {.right = true, .color = Color::green}});
  for (const auto& file : plan.files) {
    const bool has_tensors = file.tensors != 0 || &file == &plan.files.front();
    table.row({escape_for_terminal(file.path),
               has_tensors ? session.screen.plural(file.tensors, "tensor") : kind_of(file.path),
               session.screen.bytes(file.size_bytes)});
  }
  table.finish();
  session.out.flush();  // before the summary on stderr
  session.say(fmt::format("would write {} in {}, {}, with {} of buffers", plural(tensors_in(plan), "tensor"),
                          plural(plan.files.size(), "file"), format_bytes(plan.total_bytes()),
                          format_bytes(plan.memory_bytes)));
  if (const std::string steps = steps_text(plan); !steps.empty()) session.say("on the way: " + steps);
}

}  // namespace

std::string possible_outputs() {
  std::vector<std::string_view> endings;
  for (const OutputFormat& format : output_formats())
    endings.insert(endings.end(), format.endings.begin(), format.endings.end());
  const std::string_view last = endings.back();
  endings.pop_back();
  return fmt::format("a {} or {} file, or a folder", fmt::join(endings, ", "), last);
}

void show_plan(Session& session, std::string_view schema, const SavePlan& plan) {
  session.json ? write_json(session, schema, plan, nullptr) : write_plan(session, plan);
}

void say_written(Session& session, std::string_view schema, const SavePlan& plan, const SaveReport& report) {
  if (session.json) write_json(session, schema, plan, &report);
  const std::string& first = plan.files.at(0).path;
  const std::string folder = std::filesystem::path(first).parent_path().string();
  const std::string where = plan.files.size() == 1 ? first
                                                   : fmt::format("{} in {}", plural(plan.files.size(), "file"),
                                                                 folder.empty() ? "." : folder);
  session.say(fmt::format("wrote {}: {}, {} in {}", where, plural(tensors_in(plan), "tensor"),
                          format_bytes(plan.total_bytes()), format_duration(report.seconds)));
  if (report.files_kept != 0)
    session.say(fmt::format("{} had been written by a run that was stopped", plural(report.files_kept, "file")));
}

// Of several processes, the first one makes the folder.
OutputFolder::OutputFolder(const Session& session, const std::string& path, bool is_folder) : path_(path) {
  if (is_folder && team_of(session.team).is_first()) created_ = std::filesystem::create_directory(path_, ignored_);
}

OutputFolder::~OutputFolder() {
  if (created_) std::filesystem::remove(path_, ignored_);
}

void refuse_existing(const Session& session, const std::string& path) {
  if (session.save_options().overwrite || !std::filesystem::exists(path)) return;
  throw Error(Errc::invalid_argument, "already exists")
      .of_system(EEXIST)
      .in(path)
      .hint(Advice::mention(Remedy::overwrite) + " overwrites it");
}

int write(Session& session, const WriteJob& job, const SavePlan& plan, SaveOptions options) {
  if (job.dry_run) {
    say_notes(session, plan.notes);
    show_plan(session, job.schema, plan);
    return 0;
  }
  auto bar = session.progress_bar();
  options.progress = bar.callback();
  OutputFolder folder(session, job.out, job.is_folder || job.out.ends_with('/'));
  const SaveReport report = execute(plan, options);
  folder.keep();
  bar.clear();
  say_notes(session, report.notes);
  say_written(session, job.schema, plan, report);
  return 0;
}

}  // namespace ballast::cli
