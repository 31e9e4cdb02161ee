#include "checkpoint/left_out.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/name_list.hpp"
#include "core/remedy.hpp"

namespace ballast {
namespace {

class LeftOut {
 public:
  LeftOut(const Checkpoint& checkpoint, const FileFormat& format, const SaveOptions& options)
      : checkpoint_(checkpoint), format_(format), keeps_(format.keeps), options_(options) {}

  std::vector<Note> find() {
    if (checkpoint_.format == Format::torchscript) add("the code of the TorchScript module is left out");
    find_values();
    find_metadata();
    find_fields();
    find_composites();
    return std::move(notes_);
  }

 private:
  void add(std::string text, Advice hint = {}) {
    notes_.push_back({checkpoint_.target, std::move(text), Note::Kind::remark, std::move(hint)});
  }

  void find_values() {
    // In safetensors the values are metadata, which a copy keeps.
    const bool is_copy = keeps_.agreements && checkpoint_.format == format_.format;
    if (keeps_.metadata && (options_.keep_values || is_copy)) return;
    note_values_left_out(checkpoint_, keeps_.metadata, notes_);
  }

  // Two kinds of metadata are not a loss: the name of the framework, and aliases, which stay tied.
  void find_metadata() {
    NameList lost;
    for (const auto& [key, value] : checkpoint_.metadata) {
      const bool is_lost = !keeps_.metadata || (keeps_.typed_metadata && key.empty());
      if (is_lost && key != "format" && !checkpoint_.aliases.contains(key)) lost.add(key);
    }
    for (const MetadataEntry& field : checkpoint_.typed_metadata) {
      if (!keeps_.metadata) lost.add(field.key);
    }
    if (lost.empty()) return;
    add(keeps_.metadata ? "metadata without a key is left out"
                        : fmt::format("{} has no place for metadata; left out: {}", format_.written, lost.text()));
  }

  // The typed metadata of GGUF: above all the vocabulary.
  void find_fields() {
    if (!keeps_.agreements || options_.raw_blocks) return;
    NameList arrays;
    for (const MetadataEntry& field : checkpoint_.typed_metadata) {
      if (field.is_array()) arrays.add(field.key);
    }
    if (arrays.empty()) return;
    const bool is_one = arrays.count() == 1;
    add(fmt::format("{} of the metadata {} left out, which safetensors has no place for: {}",
                    is_one ? "an array" : fmt::format("{} arrays", arrays.count()), is_one ? "is" : "are",
                    arrays.text()),
        mention(Remedy::raw_blocks) + " keeps all of it");
  }

  // In a torch file the parts of a quantized tensor are one tensor again; in safetensors the metadata say what the
  // parts are.
  void find_composites() {
    if (keeps_.agreements) return;
    NameList in_parts;
    std::string layout;
    for (const Composite& composite : checkpoint_.composites) {
      if (keeps_.quantized && composite.layout == "quantized") continue;
      if (in_parts.empty()) layout = composite.layout;
      in_parts.add(composite.name);
    }
    if (in_parts.count() == 1)
      add(fmt::format("tensor {} is {}: its parts are written one by one", in_parts.text(), layout));
    if (in_parts.count() > 1)
      add(fmt::format("{} tensors are sparse, nested or quantized: their parts are written one by one: {}",
                      in_parts.count(), in_parts.text()));
  }

  const Checkpoint& checkpoint_;
  const FileFormat& format_;
  const Keeps& keeps_;
  const SaveOptions& options_;
  std::vector<Note> notes_;
};

}  // namespace

void note_values_left_out(const Checkpoint& checkpoint, bool could_be_kept, std::vector<Note>& notes) {
  NameList values;
  for (const PlainValue& value : checkpoint.values) values.add(value.path);
  if (values.empty()) return;
  const bool is_one = values.count() == 1;
  notes.push_back(
      {checkpoint.target,
       fmt::format("{} beside the tensors {} left out: {}",
                   is_one ? "a value" : fmt::format("{} values", values.count()), is_one ? "is" : "are", values.text()),
       Note::Kind::remark,
       could_be_kept ? mention(Remedy::keep_values) + " keeps " + (is_one ? "it" : "them") + " as metadata" : ""});
}

std::vector<Note> what_is_left_out(const Checkpoint& checkpoint, const FileFormat& format, const SaveOptions& options) {
  return LeftOut(checkpoint, format, options).find();
}

}  // namespace ballast
