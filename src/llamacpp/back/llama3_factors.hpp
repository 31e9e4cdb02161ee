// The parameters of Llama 3's rotary positions, from the factors that a GGUF has instead of them.
#pragma once

#include <vector>

#include <ballast/json.hpp>

namespace ballast::llamacpp::back {

// rope_scaling of type "llama3" that gives exactly these factors with this base. Null if none is found.
//
// Only two quotients matter, original_max_position_embeddings to low_freq_factor and to high_freq_factor, and few
// factors are between those that stay and those that are whole: so other parameters may do the same, and those of
// published models are preferred.
Json llama3_scaling(const std::vector<float>& factors, double base);

}  // namespace ballast::llamacpp::back
