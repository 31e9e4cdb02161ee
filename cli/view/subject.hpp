// What a page shows: one checkpoint or two, an adapter, and what the verbs say of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <ballast/adapter.hpp>
#include <ballast/align.hpp>
#include <ballast/checkpoint.hpp>
#include <ballast/progress.hpp>

#include "../session.hpp"

namespace ballast::cli {

struct Subject {
  std::vector<std::string> targets;   // as the user gave them: one, or two to compare
  std::vector<Checkpoint> sides;      // the same, opened, selected, and under the same names
  std::vector<Checkpoint> originals;  // as they were opened
  std::optional<Aligned> aligned;     // of two
  std::optional<Adapter> adapter;     // if the first target is one
  std::optional<Checkpoint> base;     // the model that the adapter belongs to, if it was given
  std::string view;                   // the view that the page begins with; empty for its own choice
};

// Opens the targets. Notes are said.
Subject open_subject(Session& session, const std::vector<std::string>& targets, const std::string& base);

// Each writes the document that the verb writes with --json.
std::string info_document(const Subject& subject, std::size_t side);
// `target` is scanned, and called `shown` in the document.
std::string scan_document(const Session& session, const std::string& target, const std::string& shown);
std::string diff_document(const Session& session, const Subject& subject, const Progress& progress);
std::string adapter_document(const Subject& subject);

}  // namespace ballast::cli
