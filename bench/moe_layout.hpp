// A model of a mixture of experts with 671 billion parameters, as its files are: every name, dtype, shape and shard of
// DeepSeek-V3, made from the numbers in its config.json. The data are holes in the files, so the 688 GB take 12 MB.
#pragma once

#include <string>
#include <vector>

#include <ballast/rank_plan.hpp>

namespace ballast::bench {

inline constexpr unsigned kMoeTensors = 91'991, kMoeShards = 163;

// Writes the shards and their index into the folder.
void write_moe_model(const std::string& folder);

// How such a model is cut: experts are dealt out, heads and the layers without experts are cut, the rest is replicated.
std::vector<RankRule> moe_rules();

}  // namespace ballast::bench
