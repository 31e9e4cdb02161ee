// What every verb that writes does with its plan: shows it, or carries it out and says so.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <ballast/save.hpp>

#include "json_writer.hpp"
#include "session.hpp"

namespace ballast::cli {

// --dry-run, with its table or its JSON.
void show_plan(Session& session, std::string_view schema, const SavePlan& plan);

// What was written, as JSON where that is asked for, and as a sentence.
void say_written(Session& session, std::string_view schema, const SavePlan& plan, const SaveReport& report);

// A file that a long job would only find at its end.
void refuse_existing(const Session& session, const std::string& path);

// The folder of an output: made when it is not there, and gone again if nothing could be written into it.
class OutputFolder {
 public:
  // Only what ends in a slash is asked for as a folder.
  explicit OutputFolder(const std::string& path) : OutputFolder(path, path.ends_with('/')) {}
  OutputFolder(const std::string& path, bool is_folder);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  void keep() { created_ = false; }

 private:
  std::filesystem::path path_;
  std::error_code ignored_;  // what is wrong with the folder, the save says better
  bool created_ = false;
};

// Shows the plan or carries it out, and says what is to be noted and what was written.
struct WriteJob {
  std::string_view schema;
  std::string out;
  bool is_folder = false;  // whatever its name says
  bool dry_run = false;
};
int write(Session& session, const WriteJob& job, const SavePlan& plan, SaveOptions options);

}  // namespace ballast::cli
