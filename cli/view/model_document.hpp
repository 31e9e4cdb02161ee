// The tensors of a checkpoint for the page, "ballast.view/1": columns, because a hundred thousand objects would be
// three times as long.
#pragma once

#include <string>

#include "subject.hpp"

namespace ballast::cli {

// Whether the page can ask for bytes, or is a file by itself.
enum class PageKind : bool { report, served };

std::string model_document(const Session& session, const Subject& subject, PageKind kind);

}  // namespace ballast::cli
