// What a page gets in the place of a document that cannot be made: {"error": …, "hint": …}.
#pragma once

#include <string>

#include <ballast/error.hpp>

namespace ballast::cli {

std::string refusal_document(const Error& error);

}  // namespace ballast::cli
