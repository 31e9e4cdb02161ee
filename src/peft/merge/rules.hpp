// The rules of merging: each turns one module of an adapter into edits of the base. The table of types says which rule
// belongs to which type.
#pragma once

#include "peft/merge/module.hpp"

namespace ballast::peft {

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

// The rows of an embedding at `indices`, replaced by those of the adapter.
void replace_tokens(const Task& task, const Tensor& rows, std::vector<std::uint64_t> indices);

}  // namespace ballast::peft
