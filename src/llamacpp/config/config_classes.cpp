#include "llamacpp/config/config_classes.hpp"

namespace ballast::llamacpp {
namespace {

using OtherName = ConfigClass::OtherNames::value_type;

constexpr OtherName kGpt2Names[] = {{"hidden_size", "n_embd"},
                                    {"max_position_embeddings", "n_positions"},
                                    {"num_attention_heads", "n_head"},
                                    {"num_hidden_layers", "n_layer"}};
constexpr OtherName kDistilNames[] = {
    {"hidden_size", "dim"}, {"num_attention_heads", "n_heads"}, {"num_hidden_layers", "n_layers"}};
constexpr OtherName kT5Names[] = {{"hidden_size", "d_model"},
                                  {"num_attention_heads", "num_heads"},
                                  {"num_hidden_layers", "num_layers"},
                                  {"head_dim", "d_kv"}};

// clang-format off
constexpr ConfigClass kConfigClasses[] = {
    {"llama", {kv_heads_as_heads, head_dim_as_is_usual, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"head_dim":null})"},
    {"mistral", {kv_heads_as_heads}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":8,"head_dim":null,"max_position_embeddings":131072,)"
     R"("rms_norm_eps":1e-06,"pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"sliding_window":4096})"},
    {"mixtral", {kv_heads_as_heads}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":8,"head_dim":null,"max_position_embeddings":131072,)"
     R"("rms_norm_eps":1e-05,"pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,)"
     R"("rope_theta":1000000.0,"sliding_window":null,"num_experts_per_tok":2,"num_local_experts":8})"},
    {"smollm3", {kv_heads_as_heads, layer_types_are_known, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":128256,"hidden_size":2048,"intermediate_size":11008,"num_hidden_layers":36,)"
     R"("num_attention_heads":16,"num_key_value_heads":4,"max_position_embeddings":32768,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":128004,"bos_token_id":128000,"eos_token_id":128001,"rope_theta":2000000.0,)"
     R"("rope_scaling":null,"sliding_window":null,"layer_types":null})"},
    {"arcee", {kv_heads_as_heads, head_dim_as_is_usual, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":2560,"intermediate_size":18432,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":4096,"rms_norm_eps":1e-05,)"
     R"("pad_token_id":null,"bos_token_id":128000,"eos_token_id":128001,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"rope_scaling":null,"head_dim":null})"},
    {"apertus", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":131072,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":65536,"rms_norm_eps":1e-05,)"
     R"("pad_token_id":3,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":12000000.0,)"
     R"("rope_scaling":{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":8192,)"
     R"("low_freq_factor":1.0,"high_freq_factor":4.0}})"},
    {"seed_oss", {kv_heads_as_heads, head_dim_as_is_usual, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":155136,"hidden_size":4096,"intermediate_size":27648,"num_hidden_layers":64,)"
     R"("num_attention_heads":80,"num_key_value_heads":8,"max_position_embeddings":524288,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":1,"bos_token_id":0,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"head_dim":128})"},
    {"granite", {kv_heads_as_heads, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"embedding_multiplier":1.0,"logits_scaling":1.0,"residual_multiplier":1.0,)"
     R"("attention_multiplier":1.0})"},
    {"granitemoe", {kv_heads_as_heads, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"embedding_multiplier":1.0,"logits_scaling":1.0,"residual_multiplier":1.0,)"
     R"("attention_multiplier":1.0,"num_local_experts":8,"num_experts_per_tok":2})"},
    {"granitemoeshared", {kv_heads_as_heads, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"embedding_multiplier":1.0,"logits_scaling":1.0,"residual_multiplier":1.0,)"
     R"("attention_multiplier":1.0,"num_local_experts":8,"num_experts_per_tok":2,"shared_intermediate_size":0})"},
    {"qwen2", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys, layer_types_are_known}, {},
     R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":32768,"rms_norm_eps":1e-06,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,"sliding_window":4096,)"
     R"("layer_types":null})"},
    {"qwen3", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys, layer_types_are_known}, {},
     R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":32,"head_dim":128,"max_position_embeddings":32768,)"
     R"("rms_norm_eps":1e-06,"tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,)"
     R"("sliding_window":4096,"layer_types":null})"},
    {"qwen2_moe", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":24,)"
     R"("num_attention_heads":16,"num_key_value_heads":16,"max_position_embeddings":32768,"rms_norm_eps":1e-06,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,"sliding_window":4096,)"
     R"("moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts_per_tok":4,)"
     R"("num_experts":60,"norm_topk_prob":false})"},
    {"qwen3_moe", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":6144,"num_hidden_layers":24,)"
     R"("num_attention_heads":32,"num_key_value_heads":4,"max_position_embeddings":32768,"rms_norm_eps":1e-06,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,"sliding_window":4096,)"
     R"("moe_intermediate_size":768,"num_experts_per_tok":8,"num_experts":128,"norm_topk_prob":false})"},
    {"qwen3_next", {rope_scaling_has_its_keys, layer_types_are_known}, {},
     R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":48,)"
     R"("num_attention_heads":16,"num_key_value_heads":2,"max_position_embeddings":32768,"rms_norm_eps":1e-06,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,"partial_rotary_factor":0.25,)"
     R"("head_dim":256,"linear_conv_kernel_dim":4,"linear_key_head_dim":128,"linear_value_head_dim":128,)"
     R"("linear_num_key_heads":16,"linear_num_value_heads":32,"moe_intermediate_size":512,)"
     R"("shared_expert_intermediate_size":512,"num_experts_per_tok":10,"num_experts":512,"norm_topk_prob":true,)"
     R"("layer_types":null})"},
    {"qwen2_vl_text", {kv_heads_as_heads, layer_types_are_known, mrope_is_default, rope_type_of_type, rope_scaling_has_its_keys},
     {},
     R"({"vocab_size":152064,"hidden_size":8192,"intermediate_size":29568,"num_hidden_layers":80,)"
     R"("num_attention_heads":64,"num_key_value_heads":8,"max_position_embeddings":32768,"rms_norm_eps":1e-05,)"
     R"("tie_word_embeddings":false,"rope_theta":1000000.0,"sliding_window":4096,"layer_types":null,)"
     R"("rope_scaling":null})"},
    {"qwen2_5_vl_text", {kv_heads_as_heads, layer_types_are_known, mrope_is_default, rope_type_of_type, rope_scaling_has_its_keys},
     {},
     R"({"vocab_size":152064,"hidden_size":8192,"intermediate_size":29568,"num_hidden_layers":80,)"
     R"("num_attention_heads":64,"num_key_value_heads":8,"max_position_embeddings":32768,"rms_norm_eps":1e-05,)"
     R"("tie_word_embeddings":false,"rope_theta":1000000.0,"sliding_window":4096,"layer_types":null,)"
     R"("rope_scaling":null})"},
    {"qwen3_vl_text", {kv_heads_as_heads, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":32,"head_dim":128,"max_position_embeddings":128000,)"
     R"("rms_norm_eps":1e-06,"tie_word_embeddings":false,"rope_theta":5000000.0,"rope_scaling":null})"},
    {"qwen3_vl_moe_text", {kv_heads_as_heads, head_dim_as_is_usual, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":24,)"
     R"("num_attention_heads":16,"num_key_value_heads":16,"max_position_embeddings":128000,"rms_norm_eps":1e-06,)"
     R"("tie_word_embeddings":false,"rope_theta":5000000.0,"moe_intermediate_size":1408,"num_experts_per_tok":4,)"
     R"("num_experts":60,"norm_topk_prob":true,"rope_scaling":null,"head_dim":null})"},
    {"gemma", {}, {},
     R"({"vocab_size":256000,"hidden_size":3072,"intermediate_size":24576,"num_hidden_layers":28,)"
     R"("num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"max_position_embeddings":8192,)"
     R"("rms_norm_eps":1e-06,"pad_token_id":0,"eos_token_id":1,"bos_token_id":2,"tie_word_embeddings":true,)"
     R"("rope_theta":10000.0})"},
    {"gemma2", {layer_types_are_known}, {},
     R"({"vocab_size":256000,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,)"
     R"("num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":8192,)"
     R"("rms_norm_eps":1e-06,"pad_token_id":0,"eos_token_id":1,"bos_token_id":2,"tie_word_embeddings":true,)"
     R"("rope_theta":10000.0,"sliding_window":4096,"layer_types":null,"final_logit_softcapping":30.0,)"
     R"("attn_logit_softcapping":50.0})"},
    {"gemma3_text", {half_the_window_each_way, rope_scaling_has_its_keys, layer_types_are_known}, {},
     R"({"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,)"
     R"("num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":131072,)"
     R"("rms_norm_eps":1e-06,"pad_token_id":0,"eos_token_id":1,"bos_token_id":2,"tie_word_embeddings":true,)"
     R"("rope_theta":1000000.0,"sliding_window":4096,"layer_types":null,"final_logit_softcapping":null,)"
     R"("attn_logit_softcapping":null,"rope_scaling":null,"rope_local_base_freq":10000.0,)"
     R"("use_bidirectional_attention":false})"},
    {"phi", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":51200,"hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":24,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"layer_norm_eps":1e-05,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null,"partial_rotary_factor":0.5,)"
     R"("bos_token_id":1,"eos_token_id":2})"},
    {"phi3", {kv_heads_as_heads, phi3_rope_scaling}, {},
     R"({"vocab_size":32064,"hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":4096,)"
     R"("original_max_position_embeddings":4096,"rms_norm_eps":1e-05,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"rope_scaling":null,"partial_rotary_factor":1.0,"bos_token_id":1,)"
     R"("eos_token_id":32000,"pad_token_id":32000,"sliding_window":null})"},
    {"phimoe", {kv_heads_as_heads, phimoe_rope_scaling, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32064,"hidden_size":4096,"intermediate_size":6400,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":131072,"rms_norm_eps":1e-05,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":1000000.0,)"
     R"("rope_scaling":null,"sliding_window":null,"num_experts_per_tok":2,"num_local_experts":16})"},
    {"gpt2", {}, kGpt2Names,
     R"({"vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"n_inner":null,)"
     R"("layer_norm_epsilon":1e-05,"bos_token_id":50256,"eos_token_id":50256})"},
    {"gpt_neox", {gpt_neox_rotary, rope_type_of_type, rope_scaling_has_its_keys, heads_divide_hidden_size}, {},
     R"({"vocab_size":50432,"hidden_size":6144,"num_hidden_layers":44,"num_attention_heads":64,)"
     R"("intermediate_size":24576,"rotary_pct":0.25,"rotary_emb_base":10000,"max_position_embeddings":2048,)"
     R"("layer_norm_eps":1e-05,"bos_token_id":0,"eos_token_id":2,"tie_word_embeddings":false,)"
     R"("use_parallel_residual":true,"rope_scaling":null})"},
    {"gpt_bigcode", {multi_query_heads}, kGpt2Names,
     R"({"vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"n_inner":null,)"
     R"("layer_norm_epsilon":1e-05,"bos_token_id":50256,"eos_token_id":50256,"multi_query":true})"},
    {"starcoder2", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":49152,"hidden_size":3072,"intermediate_size":12288,"num_hidden_layers":30,)"
     R"("num_attention_heads":24,"num_key_value_heads":2,"max_position_embeddings":4096,"norm_epsilon":1e-05,)"
     R"("bos_token_id":50256,"eos_token_id":50256,"rope_theta":10000.0,"rope_scaling":null,"sliding_window":null})"},
    {"falcon", {falcon_old_names}, {},
     R"({"vocab_size":65024,"hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,)"
     R"("layer_norm_epsilon":1e-05,"num_kv_heads":null,"new_decoder_architecture":false,"multi_query":true,)"
     R"("parallel_attn":true,"max_position_embeddings":2048,"rope_theta":10000.0,"rope_scaling":null,)"
     R"("bos_token_id":11,"eos_token_id":11})"},
    {"stablelm", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":50304,"intermediate_size":6912,"hidden_size":2560,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":4096,"layer_norm_eps":1e-05,)"
     R"("tie_word_embeddings":false,"rope_theta":10000,"rope_scaling":null,"use_parallel_residual":false,)"
     R"("partial_rotary_factor":0.25,"bos_token_id":0,"eos_token_id":0})"},
    {"bert", {}, {},
     R"({"vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,)"
     R"("intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,)"
     R"("pad_token_id":0})"},
    {"roberta", {}, {},
     R"({"vocab_size":50265,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,)"
     R"("intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,)"
     R"("pad_token_id":1,"bos_token_id":0,"eos_token_id":2})"},
    {"xlm-roberta", {}, {},
     R"({"vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,)"
     R"("intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,)"
     R"("pad_token_id":1,"bos_token_id":0,"eos_token_id":2})"},
    {"camembert", {}, {},
     R"({"vocab_size":30522,"hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,)"
     R"("intermediate_size":3072,"max_position_embeddings":512,"type_vocab_size":2,"layer_norm_eps":1e-12,)"
     R"("pad_token_id":1,"bos_token_id":0,"eos_token_id":2})"},
    {"distilbert", {}, kDistilNames,
     R"({"vocab_size":30522,"max_position_embeddings":512,"n_layers":6,"n_heads":12,"dim":768,"hidden_dim":3072,)"
     R"("pad_token_id":0})"},
    {"modernbert", {rope_theta_is_global}, {},
     R"({"vocab_size":50368,"hidden_size":768,"intermediate_size":1152,"num_hidden_layers":22,)"
     R"("num_attention_heads":12,"hidden_activation":"gelu","max_position_embeddings":8192,"norm_eps":1e-05,)"
     R"("pad_token_id":50283,"eos_token_id":50282,"bos_token_id":50281,"cls_token_id":50281,"sep_token_id":50282,)"
     R"("global_rope_theta":160000.0,"global_attn_every_n_layers":3,"local_attention":128,)"
     R"("local_rope_theta":10000.0})"},
    {"t5", {t5_decoder}, kT5Names,
     R"({"vocab_size":32128,"d_model":512,"d_kv":64,"d_ff":2048,"num_layers":6,"num_decoder_layers":null,)"
     R"("num_heads":8,"relative_attention_num_buckets":32,"layer_norm_epsilon":1e-06,"feed_forward_proj":"relu",)"
     R"("pad_token_id":0,"eos_token_id":1})"},
    {"mt5", {t5_decoder}, kT5Names,
     R"({"vocab_size":250112,"d_model":512,"d_kv":64,"d_ff":1024,"num_layers":8,"num_decoder_layers":null,)"
     R"("num_heads":6,"relative_attention_num_buckets":32,"layer_norm_epsilon":1e-06,)"
     R"("feed_forward_proj":"gated-gelu","tie_word_embeddings":false,"pad_token_id":0,"eos_token_id":1,)"
     R"("decoder_start_token_id":0})"},
    {"umt5", {t5_decoder}, kT5Names,
     R"({"vocab_size":250112,"d_model":512,"d_kv":64,"d_ff":1024,"num_layers":8,"num_decoder_layers":null,)"
     R"("num_heads":6,"relative_attention_num_buckets":32,"layer_norm_epsilon":1e-06,)"
     R"("feed_forward_proj":"gated-gelu","tie_word_embeddings":true,"pad_token_id":0,"eos_token_id":1,)"
     R"("decoder_start_token_id":0})"},
    {"deepseek_v2", {kv_heads_as_heads, head_dim_is_rotary, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"rms_norm_eps":1e-06,)"
     R"("pad_token_id":null,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"first_k_dense_replace":0,"kv_lora_rank":512,"q_lora_rank":1536,"n_group":null,)"
     R"("n_routed_experts":64,"n_shared_experts":2,"qk_nope_head_dim":128,"qk_rope_head_dim":64,)"
     R"("routed_scaling_factor":1.0,"topk_group":null,"v_head_dim":128,"num_experts_per_tok":null,)"
     R"("norm_topk_prob":false,"moe_intermediate_size":1407})"},
    {"deepseek_v3", {kv_heads_as_heads, head_dim_is_rotary_unless_given, rope_type_of_type, rope_scaling_has_its_keys},
     {},
     R"({"vocab_size":129280,"hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,)"
     R"("num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"n_shared_experts":1,)"
     R"("n_routed_experts":256,"routed_scaling_factor":2.5,"kv_lora_rank":512,"q_lora_rank":1536,)"
     R"("qk_rope_head_dim":64,"v_head_dim":128,"qk_nope_head_dim":128,"n_group":8,"topk_group":4,)"
     R"("num_experts_per_tok":8,"first_k_dense_replace":3,"norm_topk_prob":true,"max_position_embeddings":4096,)"
     R"("rms_norm_eps":1e-06,"pad_token_id":null,"bos_token_id":0,"eos_token_id":1,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"rope_scaling":null})"},
    {"gpt_oss", {kv_heads_as_heads, head_dim_as_is_usual, layer_types_are_known, rope_type_of_type, rope_scaling_has_its_keys},
     {},
     R"({"num_hidden_layers":36,"num_local_experts":128,"vocab_size":201088,"hidden_size":2880,)"
     R"("intermediate_size":2880,"head_dim":64,"num_attention_heads":64,"num_key_value_heads":8,)"
     R"("sliding_window":128,"rope_theta":150000.0,"tie_word_embeddings":false,"max_position_embeddings":131072,)"
     R"("rms_norm_eps":1e-05,"rope_scaling":{"rope_type":"yarn","factor":32.0,"beta_fast":32.0,"beta_slow":1.0,)"
     R"("truncate":false,"original_max_position_embeddings":4096},"num_experts_per_tok":4,"layer_types":null})"},
    {"glm4", {}, {},
     R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,)"
     R"("num_attention_heads":32,"num_key_value_heads":2,"partial_rotary_factor":0.5,"head_dim":128,)"
     R"("max_position_embeddings":131072,"rms_norm_eps":1.5625e-07,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"pad_token_id":151329,"eos_token_id":[151329,151336,151338],"bos_token_id":null})"},
    {"glm4_moe", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":10944,"num_hidden_layers":46,)"
     R"("num_attention_heads":96,"partial_rotary_factor":0.5,"num_key_value_heads":8,)"
     R"("max_position_embeddings":131072,"rms_norm_eps":1e-05,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"moe_intermediate_size":1408,"num_experts_per_tok":8,"n_shared_experts":1,)"
     R"("n_routed_experts":128,"routed_scaling_factor":1.0,"n_group":1,"topk_group":1,"first_k_dense_replace":1,)"
     R"("norm_topk_prob":true})"},
    {"glm4v_text", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,)"
     R"("num_attention_heads":32,"num_key_value_heads":2,"max_position_embeddings":32768,"rms_norm_eps":1e-05,)"
     R"("tie_word_embeddings":false,"rope_theta":10000.0,"rope_scaling":null})"},
    {"glm4v_moe_text", {rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":151424,"hidden_size":4096,"intermediate_size":10944,"num_hidden_layers":46,)"
     R"("num_attention_heads":96,"partial_rotary_factor":0.5,"num_key_value_heads":8,)"
     R"("max_position_embeddings":65536,"rms_norm_eps":1e-05,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"moe_intermediate_size":1408,"num_experts_per_tok":8,"n_shared_experts":1,)"
     R"("n_routed_experts":128,"routed_scaling_factor":1.0,"n_group":1,"topk_group":1,"first_k_dense_replace":1,)"
     R"("norm_topk_prob":true})"},
    {"olmo", {kv_heads_as_heads, olmo_rope_scaling}, {},
     R"({"vocab_size":50304,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"pad_token_id":1,)"
     R"("bos_token_id":null,"eos_token_id":50279,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"clip_qkv":null})"},
    {"olmo2", {kv_heads_as_heads, olmo_rope_scaling}, {},
     R"({"vocab_size":50304,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"pad_token_id":1,)"
     R"("bos_token_id":null,"eos_token_id":50279,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"rms_norm_eps":1e-05})"},
    {"olmo3", {kv_heads_as_heads, rope_scaling_has_its_keys, olmo3_layer_types}, {},
     R"({"vocab_size":50304,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":null,"max_position_embeddings":2048,"pad_token_id":1,)"
     R"("bos_token_id":null,"eos_token_id":50279,"tie_word_embeddings":false,"rope_theta":10000.0,)"
     R"("rope_scaling":null,"rms_norm_eps":1e-05,"sliding_window":4096,"layer_types":null})"},
    {"olmoe", {kv_heads_as_heads, rope_type_of_type, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":50304,"hidden_size":2048,"intermediate_size":2048,"num_hidden_layers":16,)"
     R"("num_attention_heads":16,"num_key_value_heads":null,"max_position_embeddings":4096,"rms_norm_eps":1e-05,)"
     R"("pad_token_id":1,"bos_token_id":null,"eos_token_id":50279,"tie_word_embeddings":false,)"
     R"("rope_theta":10000.0,"rope_scaling":null,"clip_qkv":null,"num_experts_per_tok":8,"num_experts":64,)"
     R"("norm_topk_prob":false})"},
    {"cohere", {kv_heads_as_heads, rope_scaling_has_its_keys}, {},
     R"({"vocab_size":256000,"hidden_size":8192,"intermediate_size":22528,"logit_scale":0.0625,)"
     R"("num_hidden_layers":40,"num_attention_heads":64,"num_key_value_heads":null,"max_position_embeddings":8192,)"
     R"("layer_norm_eps":1e-05,"pad_token_id":0,"bos_token_id":5,"eos_token_id":255001,"tie_word_embeddings":true,)"
     R"("rope_theta":10000.0,"rope_scaling":null})"},
    {"cohere2", {kv_heads_as_heads, head_dim_unless_given, rope_scaling_has_its_keys, layer_types_are_known}, {},
     R"({"vocab_size":256000,"hidden_size":8192,"intermediate_size":22528,"logit_scale":0.0625,)"
     R"("num_hidden_layers":40,"num_attention_heads":64,"num_key_value_heads":null,"max_position_embeddings":8192,)"
     R"("layer_norm_eps":1e-05,"pad_token_id":0,"bos_token_id":5,"eos_token_id":255001,"tie_word_embeddings":true,)"
     R"("rope_theta":10000.0,"rope_scaling":null,"sliding_window":4096,"layer_types":null})"},
    {"lfm2", {lfm2_layers}, {},
     R"({"vocab_size":65536,"hidden_size":2560,"intermediate_size":12288,"num_hidden_layers":32,)"
     R"("num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":128000,"norm_eps":1e-05,)"
     R"("pad_token_id":0,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":true,"rope_theta":1000000.0,)"
     R"("conv_L_cache":3,"block_multiple_of":256,"block_ffn_dim_multiplier":1.0,"block_auto_adjust_ff_dim":true,)"
     R"("full_attn_idxs":null,"layer_types":null})"},
};
// clang-format on

}  // namespace

const ConfigClass* config_class(std::string_view model_type) {
  for (const ConfigClass& row : kConfigClasses) {
    if (row.model_type == model_type) return &row;
  }
  return nullptr;
}

const ConfigClass* config_class_in_name(std::string_view name) {
  const ConfigClass* longest = nullptr;
  for (const ConfigClass& row : kConfigClasses) {
    const bool is_longer = longest == nullptr || row.model_type.size() > longest->model_type.size();
    if (is_longer && name.find(row.model_type) != std::string_view::npos) longest = &row;
  }
  return longest;
}

}  // namespace ballast::llamacpp
