// The rules, one a method: each turns one module of an adapter into edits of the base. The table says which is whose.
#pragma once

#include "ops/merge/module.hpp"

namespace ballast::merging {

void merge_lora(const Task& task);
void merge_adalora(const Task& task);
void merge_ia3(const Task& task);
void merge_ln_tuning(const Task& task);
void merge_loha(const Task& task);
void merge_lokr(const Task& task);
void merge_hira(const Task& task);
void merge_oft(const Task& task);
void merge_boft(const Task& task);
void merge_hra(const Task& task);
void merge_road(const Task& task);
void merge_vera(const Task& task);
void merge_pvera(const Task& task);
void merge_randlora(const Task& task);
void merge_vblora(const Task& task);
void merge_unilora(const Task& task);
void merge_tinylora(const Task& task);
void merge_fourierft(const Task& task);
void merge_waveft(const Task& task);
void merge_c3a(const Task& task);
void merge_shira(const Task& task);
void merge_miss(const Task& task);
void merge_gralora(const Task& task);
void merge_delora(const Task& task);

// Rows of an embedding, which the adapter has as they are to become.
void replace_tokens(const Task& task, const Tensor& rows, std::vector<std::uint64_t> indices);

}  // namespace ballast::merging
