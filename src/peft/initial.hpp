// Initialisations of a LoRA that change the base before anything is trained.
#pragma once

#include <ballast/adapter.hpp>

namespace ballast::peft {

// Why the adapter does not belong to the base as it was published: a sentence, or nothing if it does.
std::string why_base_is_another(const AdapterConfig& config);

// Throws Errc::unsupported, with that sentence.
void refuse_another_base(const AdapterConfig& config);

}  // namespace ballast::peft
