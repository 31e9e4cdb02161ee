// Every verb that writes uses this: it shows its plan, or carries it out and reports the result.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>
#include <ballast/save.hpp>

#include "json_writer.hpp"
#include "session.hpp"

namespace ballast::cli {

// "a .safetensors, .gguf or .npz file, or a folder": whatever can be written.
std::string possible_outputs();

// Shows the plan for --dry-run, as a table or as JSON.
void show_plan(Session& session, std::string_view schema, const SavePlan& plan);

// Reports what was written: as JSON if the user asks for it, and as a sentence.
void say_written(Session& session, std::string_view schema, const SavePlan& plan, const SaveReport& report);

// Refuses an existing file at once, which a long job would otherwise find only at its end.
void refuse_existing(const Session& session, const std::string& path);

// Refuses to write something else over one of the files that it is made of, by whatever name the path reaches it.
void refuse_own_files(const std::string& path, std::span<const CheckpointFile> files);

// The folder of an output. It is made if it does not exist, and removed again if nothing could be written into it.
class OutputFolder {
 public:
  // Only a path that ends in a slash asks for a folder.
  OutputFolder(const Session& session, const std::string& path) : OutputFolder(session, path, path.ends_with('/')) {}
  OutputFolder(const Session& session, const std::string& path, bool is_folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  void keep() { created_ = false; }

 private:
  std::filesystem::path path_;
  std::error_code ignored_;  // the save has a better message for a folder that cannot be made
  bool created_ = false;
};

// Shows the plan or carries it out, and reports notes and the files that were written.
struct WriteJob {
  std::string_view schema;
  std::string out;
  bool is_folder = false;  // even if the name does not end in a slash
  bool dry_run = false;
};
int write(Session& session, const WriteJob& job, const SavePlan& plan, SaveOptions options);

}  // namespace ballast::cli
