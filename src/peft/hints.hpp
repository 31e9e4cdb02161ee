// The hints that several complaints about adapters share.
#pragma once

#include <string_view>

namespace ballast::peft {

inline constexpr std::string_view kWasItSavedWhole = "was the file saved completely?";
inline constexpr std::string_view kIsItTheConfig = "is this the adapter_config.json that belongs to the weights?";
inline constexpr std::string_view kAnotherModel = "the adapter belongs to another model, or to another size of it";

}  // namespace ballast::peft
