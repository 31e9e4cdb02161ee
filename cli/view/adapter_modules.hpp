// How much an adapter changes each module, "ballast.view.modules/1".
#pragma once

#include <string>

#include "subject.hpp"

namespace ballast::cli {

std::string modules_document(const Session& session, const Subject& subject, const Progress& progress);

}  // namespace ballast::cli
