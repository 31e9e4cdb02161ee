// What single classes have that is more than a row of a table: the inverse of key_preparations.cpp, and values that
// follow from the architecture.
#pragma once

#include "llamacpp/back/back_model.hpp"

namespace ballast::llamacpp::back {

void finish_bert(BackModel& model);
void finish_roberta(BackModel& model);  // positions begin behind the padding
void finish_jina(BackModel& model);
void finish_nomic(BackModel& model);
void finish_deepseek(BackModel& model);
void finish_falcon(BackModel& model);
void finish_gemma(BackModel& model);
void finish_glm4moe(BackModel& model);
void finish_lfm2(BackModel& model);
void finish_qwen35(BackModel& model);
void finish_qwen3next(BackModel& model);
void finish_t5(BackModel& model);

// Where RoBERTa's positions begin: behind the padding's number.
std::uint64_t first_position(const GgufFacts& facts);

}  // namespace ballast::llamacpp::back
