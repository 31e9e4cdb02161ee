// What transformers' configuration classes do to the values of a config.json, besides filling in those that are
// missing.
//
// A step changes `values`, which already has the class's defaults. `given` is what the file says. It returns false if
// the class would refuse the file; the converter then takes the file as it is.
#pragma once

#include <ballast/json.hpp>

namespace ballast::llamacpp {

using ConfigStep = bool (*)(Json& values, const Json& given);

bool kv_heads_as_heads(Json& values, const Json& given);  // if num_key_value_heads is null
bool multi_query_heads(Json& values, const Json& given);  // one for all queries, or one for each
bool heads_divide_hidden_size(Json& values, const Json& given);

bool head_dim_as_is_usual(Json& values, const Json& given);   // hidden size / heads if head_dim is null
bool head_dim_unless_given(Json& values, const Json& given);  // the same, but a null that the file has stays null
bool head_dim_is_rotary(Json& values, const Json& given);     // the rotary part of the heads
bool head_dim_is_rotary_unless_given(Json& values, const Json& given);

bool layer_types_are_known(Json& values, const Json& given);  // and there is one for every layer
bool olmo3_layer_types(Json& values, const Json& given);
bool lfm2_layers(Json& values, const Json& given);
bool half_the_window_each_way(Json& values, const Json& given);

bool rope_type_of_type(Json& values, const Json& given);
bool rope_scaling_has_its_keys(Json& values, const Json& given);
bool mrope_is_default(Json& values, const Json& given);
bool phi3_rope_scaling(Json& values, const Json& given);
bool phimoe_rope_scaling(Json& values, const Json& given);
bool olmo_rope_scaling(Json& values, const Json& given);
bool gpt_neox_rotary(Json& values, const Json& given);
bool rope_theta_is_global(Json& values, const Json& given);

bool falcon_old_names(Json& values, const Json& given);
bool t5_decoder(Json& values, const Json& given);

}  // namespace ballast::llamacpp
