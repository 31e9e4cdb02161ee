// Inputs for the targets that read what lies beside a model's weights: cards and configurations.
#pragma once

#include <string>
#include <vector>

namespace ballast::fuzz {

inline std::vector<std::string> model_cards() {
  std::vector<std::string> cards = {"", "---", "---\n---\n", "# A model without data\n"};
  for (const char* yaml :
       {"license: mit",
        "license: [mit, 'apache-2.0', \"x\\u00e9\\n\"]",
        "language:\n- en\n- no\n# comment\ntags: []",
        "base_model:\n  - org/Name-7B-v0.1\n  - https://huggingface.co/org/name\n  -\n    name: x\n    version: 1.0",
        "a: |\n  one\n   two\n\nb: >-\n  three\n  four\nc: |+2\n    x\n",
        "a: one\n  two\n\n  three",
        "a: 'one\n  it''s two'\nb: \"x \\\n  y\"",
        "a: {b: c, d, 'e': [f, {g: h}]}",
        "- a\n- - b\n  - c\n-\n  d: e",
        "a: 12:30\nb: 0x1F\nc: 1.5e+3\nd: .inf\ne: ~\nf: 2024-01-01",
        "a: &x 1\nb: *x",
        "a: !!str 1",
        "? a\n: b",
        "a: b: c",
        "a:\n  b\n c",
        "\ta: b",
        "a: [",
        "a: 'x",
        "a: @x",
        "model-index:\n- results:\n  - task: {type: x}"})
    cards.push_back("---\n" + std::string(yaml) + "\n---\n# A model\n");
  return cards;
}

inline std::vector<std::string> model_configs() {
  std::vector<std::string> configs = {"", "{}", "[]", "{\"architectures\":[]}", "{\"ssm_cfg\":{},\"d_model\":64}"};
  struct Model {
    const char *class_name, *type, *more;
  };
  for (const auto& [class_name, type, more] : {
           Model{"LlamaForCausalLM", "llama", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}"},
           Model{"MixtralForCausalLM", "mixtral", "\"head_dim\":null"},
           Model{"Qwen2ForCausalLM", "qwen2", "\"layer_types\":[\"full_attention\"],\"num_hidden_layers\":1"},
           Model{"Qwen3NextForCausalLM", "qwen3_next", "\"partial_rotary_factor\":0.25"},
           Model{"Gemma3ForConditionalGeneration", "gemma3", "\"text_config\":{\"hidden_size\":64}"},
           Model{"Phi3ForCausalLM", "phi3", "\"original_max_position_embeddings\":4096"},
           Model{"BertForSequenceClassification", "bert", "\"id2label\":{\"0\":\"a\",\"1\":\"b\"}"},
           Model{"RobertaModel", "roberta", "\"pad_token_id\":1"},
           Model{"NomicBertModel", "nomic_bert", "\"n_positions\":8192,\"n_layer\":2"},
           Model{"T5ForConditionalGeneration", "t5", "\"decoder_start_token_id\":0"},
           Model{"DeepseekV3ForCausalLM", "deepseek_v3", "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40}"},
           Model{"Lfm2ForCausalLM", "lfm2", "\"full_attn_idxs\":[1,3]"},
           Model{"Olmo3ForCausalLM", "olmo3", "\"sliding_window\":64"},
           Model{"MambaForCausalLM", "mamba", "\"hidden_size\":64,\"num_hidden_layers\":2"},
           Model{"FalconForCausalLM", "falcon", "\"n_embed\":64"},
           Model{"InternVLChatModel", "internvl", "\"llm_config\":{\"architectures\":[\"Qwen2ForCausalLM\"]}"},
       })
    configs.push_back("{\"architectures\":[\"" + std::string(class_name) + "\"],\"model_type\":\"" + type + "\"," +
                      more + "}");
  return configs;
}

}  // namespace ballast::fuzz
