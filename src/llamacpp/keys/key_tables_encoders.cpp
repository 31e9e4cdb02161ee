// Architectures that read a whole text at once.
#include "llamacpp/keys/key_base.hpp"

namespace ballast::llamacpp {
namespace keys {
namespace {

// clang-format off
constexpr KeyRow kBert[] = {
    row_of("attention.causal", boolean, formulas::no),
    written_by(formulas::write_pooling),
    row_of("classifier.output_labels", list, formulas::class_labels),
};
constexpr KeyRow kNomicMoe[] = {
    {"moe_every_n_layers", count, "moe_every_n_layers", required},
    {"expert_used_count", count, "moe_top_k", required},
};
constexpr KeyRow kModernBert[] = {
    {"attention.sliding_window", count, "local_attention", required},
    {"attention.sliding_window_pattern", count_or_counts, "global_attn_every_n_layers"},
    row_of("rope.scaling.type", text, formulas::rope_none),
    {"vocab_size", count, "vocab_size", required},
    {"hidden_activation", text, "hidden_activation", if_true},
};
constexpr KeyRow kNeoBert[] = {
    row_of("feed_forward_length", count, formulas::two_thirds_of_intermediate_size),
    {"rope.freq_base", real, {}, optional, "10000.0"},
    row_of("rope.scaling.type", text, formulas::rope_none),
    {"attention.layer_norm_rms_epsilon", real, "norm_eps", optional, "1e-6"},
    {"pooling_type", count, {}, optional, "2"},
};
constexpr KeyRow kEuroBert[] = {
    row_of("attention.causal", boolean, formulas::no),
    row_of("rope.scaling.type", text, formulas::rope_none),
    written_by(formulas::write_pooling),
};
constexpr KeyRow kT5Sizes[] = {
    row_of("context_length", count, formulas::t5_context_length),
    {"embedding_length", count, "d_model", required},
    {"feed_forward_length", count_or_counts, "d_ff", required},
    kBlockCount,
};
constexpr KeyRow kT5Decoder[] = {{"decoder_block_count", count, "num_decoder_layers"}};
constexpr KeyRow kT5Attention[] = {
    {"attention.head_count", count_or_counts, "num_heads", required},
    {"attention.key_length", count, "d_kv", required},
    {"attention.value_length", count, "d_kv", required},
    {"attention.layer_norm_epsilon", real, "layer_norm_epsilon", required},
    {"attention.relative_buckets_count", count, "relative_attention_num_buckets", required},
    {"attention.layer_norm_rms_epsilon", real, "layer_norm_epsilon", required},
};
constexpr KeyRow kT5End[] = {{"decoder_start_token_id", count, "decoder_start_token_id", required}, kFileType};
constexpr KeyRow kT5EncoderEnd[] = {kFileType};

constexpr ArchitectureKeys kEncoderArchitectures[] = {
    {"bert", formulas::prepare_bert, {kBase, kBert}},
    {"eurobert", nullptr, {kBase, kEuroBert}},
    {"jina-bert-v2", nullptr, {kBase, kBert}},
    {"modern-bert", nullptr, {kBase, kBert, kModernBert}},
    {"neo-bert", nullptr, {kBase, kBert, kNeoBert}},
    {"nomic-bert", formulas::prepare_nomic, {kBase, kBert}},
    {"nomic-bert-moe", formulas::prepare_nomic, {kBase, kBert, kNomicMoe}},
    {"t5", nullptr, {kT5Sizes, kT5Decoder, kT5Attention, kT5End}},
    {"t5encoder", nullptr, {kT5Sizes, kT5Attention, kT5EncoderEnd}},
};
// clang-format on

}  // namespace
}  // namespace keys

std::span<const ArchitectureKeys> encoder_architectures() { return keys::kEncoderArchitectures; }

}  // namespace ballast::llamacpp
