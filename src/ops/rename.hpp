// Every name of a checkpoint replaced by another, wherever it stands.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <ballast/checkpoint.hpp>

namespace ballast {

// Two tensors that end up under one name are Errc::invalid_argument, naming both.
Checkpoint rename_by(Checkpoint checkpoint, const std::function<std::string(std::string_view)>& renamed);

}  // namespace ballast
