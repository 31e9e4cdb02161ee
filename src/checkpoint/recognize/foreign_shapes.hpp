// Formats without a magic, told by what their first numbers or letters must be. Each function says what the file is, or
// nothing.
#pragma once

#include "checkpoint/recognize/foreign.hpp"

namespace ballast::foreign {

// What to do with a model of another program, with one that nothing converts but its own program, and with all else.
inline constexpr std::string_view kExport = "export its weights as safetensors with the program that wrote it";
inline constexpr std::string_view kConvert = "convert it with the program that wrote it";
inline constexpr std::string_view kOther = "give the file that holds the weights";

std::string_view skip_space(std::string_view text);  // that of JSON, at the beginning

std::optional<ForeignFormat> text(const FileLook& look);              // web pages, XML, JSON, Markdown and all others
std::optional<ForeignFormat> tensorflow_table(const FileLook& look);  // the index of a checkpoint
std::optional<ForeignFormat> protobuf(const FileLook& look);          // ONNX, CoreML, TensorFlow, SentencePiece, Caffe
std::optional<ForeignFormat> message_pack(const FileLook& look);      // flax
std::optional<ForeignFormat> ctranslate2(const FileLook& look);
std::optional<ForeignFormat> lua_table(const FileLook& look);  // .t7 whose root is a table
std::optional<ForeignFormat> llama2_c(const FileLook& look);   // of the first version, which has no magic
std::optional<ForeignFormat> darknet(const FileLook& look);

}  // namespace ballast::foreign
