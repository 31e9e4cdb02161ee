// TokenizerFolder: a model's folder in memory, and the tokenizer metadata that it gives.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ballast/typed_metadata.hpp>

#include "llamacpp/tokenizer/tokenizer.hpp"
#include "support/counting_source.hpp"

namespace ballast::test {

class TokenizerFolder {
 public:
  explicit TokenizerFolder(std::string class_name, std::string architecture = "llama", std::string config = "{}")
      : class_name_(std::move(class_name)), architecture_(std::move(architecture)), config_(Json::parse(config)) {
    file("config.json", config);
  }

  TokenizerFolder& file(const std::string& name, std::string_view text) {
    files_->add("m/" + name, text);
    return *this;
  }
  TokenizerFolder& pre(std::string name) {
    options_.pre_tokenizer = std::move(name);
    return *this;
  }

  TypedMetadata read() {
    OpenOptions options;
    options.files = files_;
    const llamacpp::ModelFolder folder("m", options);
    TypedMetadata out;
    notes.clear();
    llamacpp::add_tokenizer(folder, config_, class_name_, architecture_, options_, out, notes);
    return out;
  }
  // The value of a key as text; "none" if there is no such key.
  std::string value(std::string_view key) {
    const TypedMetadata metadata = read();
    const MetadataEntry* entry = metadata.find("tokenizer." + std::string(key));
    return entry ? text(*entry) : "none";
  }
  std::string tokens() { return value("ggml.tokens"); }
  std::string types() { return value("ggml.token_type"); }

  std::vector<Note> notes;

 private:
  std::string class_name_, architecture_;
  Json config_;
  std::shared_ptr<MemoryFiles> files_ = std::make_shared<MemoryFiles>();
  llamacpp::TokenizerOptions options_;
};

// A tokenizer.json with byte-level BPE. `parts` are further members of its root, each with a comma before it.
inline std::string bpe_json(std::string_view vocabulary, std::string_view added, std::string_view parts = {},
                            std::string_view merges = R"(["a b"])") {
  std::string json = R"({"model":{"type":"BPE","vocab":)";
  json.append(vocabulary).append(R"(,"merges":)").append(merges).append(R"(},"added_tokens":[)").append(added);
  json.append("]");
  if (parts.find("pre_tokenizer") == parts.npos)
    json += R"(,"normalizer":null,"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"})";
  return json.append(parts).append("}");
}

// An element of added_tokens.
inline std::string added_token(int id, std::string_view text, bool special, bool normalized = false) {
  return R"({"id":)" + std::to_string(id) + R"(,"content":")" + std::string(text) + R"(","special":)" +
         (special ? "true" : "false") + R"(,"normalized":)" + (normalized ? "true" : "false") + "}";
}

}  // namespace ballast::test
