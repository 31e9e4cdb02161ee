// Formats without a magic, recognized by their first numbers or letters. Each function says what the file is, or
// returns nothing.
#pragma once

#include "checkpoint/recognize/foreign.hpp"

namespace ballast::foreign {

// Hints for a model of another program, for a model that only its own program converts, and for everything else.
inline constexpr std::string_view kExport = "export its weights as safetensors with the program that wrote it";
inline constexpr std::string_view kConvert = "convert it with the program that wrote it";
inline constexpr std::string_view kOther = "give the file that holds the weights";

std::string_view skip_space(std::string_view text);  // skips the spaces of JSON at the beginning

std::optional<ForeignFormat> text(const FileLook& look);              // web pages, XML, JSON, Markdown, other text
std::optional<ForeignFormat> tensorflow_table(const FileLook& look);  // the index of a checkpoint
std::optional<ForeignFormat> protobuf(const FileLook& look);          // ONNX, CoreML, TensorFlow, SentencePiece, Caffe
std::optional<ForeignFormat> message_pack(const FileLook& look);      // flax
std::optional<ForeignFormat> ctranslate2(const FileLook& look);
std::optional<ForeignFormat> lua_table(const FileLook& look);  // .t7 whose root is a table
std::optional<ForeignFormat> llama2_c(const FileLook& look);   // of the first version, which has no magic
std::optional<ForeignFormat> darknet(const FileLook& look);

}  // namespace ballast::foreign
