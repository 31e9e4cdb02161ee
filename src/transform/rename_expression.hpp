// The expression of a RenameRule, compiled.
#pragma once

#include <re2/re2.h>

#include <memory>

#include <ballast/transform.hpp>

namespace ballast {

// Throws Errc::invalid_argument if the expression or its replacement is wrong.
std::unique_ptr<re2::RE2> compile(const RenameRule& rule);

}  // namespace ballast
