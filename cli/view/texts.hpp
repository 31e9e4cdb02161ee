// What a model says in words: the small files beside its weights, its tokenizer, its chat template, long metadata.
#pragma once

#include <cstdint>
#include <string>

#include "subject.hpp"

namespace ballast::cli {

// "ballast.view.texts/1". Of each file, the first `most_bytes` are read and the rest is counted.
std::string texts_document(const Session& session, const Subject& subject, std::size_t side, std::uint64_t most_bytes);

}  // namespace ballast::cli
