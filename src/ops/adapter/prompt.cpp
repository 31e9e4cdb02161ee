// A prompt encoder is a table of embeddings, which some methods send through layers of their own while they train:
// P-tuning through two or three linear layers, if need be behind an LSTM; prefix tuning through two with a tanh
// between. Files hold what comes out. CPT has the words of its context in one table and what was learned in another, no
// longer than is allowed, which is added; a cartridge has its first tokens, which are not trained, in a table of their
// own.
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "ops/adapter/computed.hpp"
#include "ops/adapter/special.hpp"
#include "ops/dimension_range.hpp"
#include "tensor/concat_storage.hpp"

namespace ballast::adapter {
namespace {

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;

  std::span<const float> row(std::size_t i) const { return std::span(values).subspan(i * columns, columns); }
};

Matrix matrix_of(const Tensor& tensor) {
  const bool is_vector = tensor.rank() == 1;
  return {is_vector ? 1 : tensor.shape()[0], is_vector ? tensor.shape()[0] : tensor.shape()[1], floats_of(tensor)};
}

// input · weightᵀ + bias
Matrix linear(const Matrix& input, const Matrix& weight, const Matrix& bias) {
  Matrix output{input.rows, weight.rows, std::vector<float>(input.rows * weight.rows)};
  for (std::size_t i = 0; i < input.rows; ++i) {
    for (std::size_t j = 0; j < weight.rows; ++j) {
      double sum = static_cast<double>(bias.values[j]);
      for (std::size_t k = 0; k < input.columns; ++k)
        sum += static_cast<double>(input.row(i)[k]) * static_cast<double>(weight.row(j)[k]);
      output.values[i * weight.rows + j] = static_cast<float>(sum);
    }
  }
  return output;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer of torch.nn.LSTM, whose gates are in the order i, f, g, o. `weights` are weight_ih,
// weight_hh, bias_ih and bias_hh; the output goes into columns of `output` from `column` on.
void lstm(const Matrix& input, std::span<const Matrix> weights, bool backwards, Matrix& output, std::size_t column) {
  const std::size_t size = weights[1].columns;
  Matrix hidden{1, size, std::vector<float>(size)};
  std::vector<float> cell(size);
  const Matrix gates_of_input = linear(input, weights[0], weights[2]);
  for (std::size_t step = 0; step < input.rows; ++step) {
    const std::size_t i = backwards ? input.rows - 1 - step : step;
    const Matrix gates_of_hidden = linear(hidden, weights[1], weights[3]);
    const auto gate = [&](std::size_t which, std::size_t j) {
      return gates_of_input.row(i)[which * size + j] + gates_of_hidden.values[which * size + j];
    };
    for (std::size_t j = 0; j < size; ++j) {
      cell[j] = sigmoid(gate(1, j)) * cell[j] + sigmoid(gate(0, j)) * std::tanh(gate(2, j));
      hidden.values[j] = sigmoid(gate(3, j)) * std::tanh(cell[j]);
      output.values[i * output.columns + column + j] = hidden.values[j];
    }
  }
}

class Encoder {
 public:
  Encoder(const StateDict& state, std::string prefix) : state_(state), prefix_(std::move(prefix)) {}

  const Tensor* find(const std::string& name) const { return state_.find(prefix_ + name); }

  // "mlp_head.0", "mlp_head.2", ...: shapes are checked here, values come later.
  void add_linears(const std::string& name, bool is_tanh) {
    for (int i = 0; find(name + "." + std::to_string(i) + ".weight") != nullptr; i += 2) {
      const std::string layer = name + "." + std::to_string(i);
      const std::size_t first = take({layer + ".weight", layer + ".bias"});
      expect({rows_of(first), width_}, first);
      expect({rows_of(first)}, first + 1);
      width_ = rows_of(first);
      steps_.push_back({Step::Kind::linear, first, i > 0, is_tanh});
    }
  }

  void add_lstm() {
    for (int layer = 0; find("lstm_head.weight_ih_l" + std::to_string(layer)) != nullptr; ++layer) {
      std::size_t first = 0;
      for (const std::string ending : {"", "_reverse"}) {
        const std::string at = "_l" + std::to_string(layer) + ending;
        const std::size_t taken = take({"lstm_head.weight_ih" + at, "lstm_head.weight_hh" + at,
                                        "lstm_head.bias_ih" + at, "lstm_head.bias_hh" + at});
        if (ending.empty()) first = taken;
        const std::uint64_t gates = rows_of(first);  // of both directions, whose outputs lie side by side
        if (gates % 4 != 0) {
          throw Error(Errc::mismatch, "the LSTM of the prompt encoder " + quote(prefix_) + " has " +
                                          std::to_string(gates) + " rows of weights, which are no 4 gates")
              .hint("was the file saved whole?");
        }
        expect({gates, width_}, taken);
        expect({gates, gates / 4}, taken + 1);
        expect({gates}, taken + 2);
        expect({gates}, taken + 3);
      }
      width_ = rows_of(first) / 2;
      steps_.push_back({Step::Kind::lstm, first, false, false});
    }
  }

  Tensor output() {
    const Tensor& embedding = *find("embedding.weight");
    if (steps_.empty()) return embedding;
    tensors_.push_back(embedding);
    return computed(
        DType::f32, {embedding.shape()[0], width_}, "prompt encoder", tensors_,
        [steps = steps_](const std::vector<Tensor>& from) { return bytes_of_floats(run(steps, from).values); });
  }

  void begin() {
    const Tensor& embedding = *find("embedding.weight");
    if (embedding.rank() != 2 || embedding.numel() == 0)
      throw Error(Errc::malformed, "the embeddings of a prompt encoder must be a matrix, and not an empty one");
    width_ = embedding.shape()[1];
  }

 private:
  struct Step {
    enum class Kind : std::uint8_t { linear, lstm } kind;
    std::size_t first;        // of its tensors
    bool activates, is_tanh;  // what is done to the input
  };

  static Matrix run(const std::vector<Step>& steps, const std::vector<Tensor>& from) {
    Matrix value = matrix_of(from.back());
    for (const Step& step : steps) {
      const std::size_t count = step.kind == Step::Kind::linear ? 2 : 8;
      std::vector<Matrix> weights;
      for (std::size_t i = 0; i < count; ++i) weights.push_back(matrix_of(from[step.first + i]));
      if (step.activates) {
        for (float& x : value.values) x = step.is_tanh ? std::tanh(x) : std::max(x, 0.0f);
      }
      if (step.kind == Step::Kind::linear) {
        value = linear(value, weights[0], weights[1]);
        continue;
      }
      const std::size_t size = weights[1].columns;
      Matrix output{value.rows, 2 * size, std::vector<float>(value.rows * 2 * size)};
      lstm(value, std::span(weights).first(4), false, output, 0);
      lstm(value, std::span(weights).subspan(4), true, output, size);
      value = std::move(output);
    }
    return value;
  }

  std::size_t take(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const Tensor* tensor = find(name);
      if (tensor == nullptr) throw Error(Errc::not_found, "the prompt encoder has no " + quote(prefix_ + name));
      tensors_.push_back(*tensor);
    }
    return tensors_.size() - names.size();
  }

  std::uint64_t rows_of(std::size_t i) const { return tensors_[i].rank() == 0 ? 0 : tensors_[i].shape()[0]; }

  void expect(const Shape& shape, std::size_t i) const {
    if (tensors_[i].shape() != shape)
      throw Error(Errc::mismatch, "a layer of the prompt encoder " + quote(prefix_) + " has the shape " +
                                      to_string(tensors_[i].shape()) + " instead of " + to_string(shape));
  }

  const StateDict& state_;
  std::string prefix_;
  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::uint64_t width_ = 0;
};

// How long what CPT learned of each token may be: tokens of the format, of the input, and the others, by the type that
// the configuration has for each.
std::vector<float> longest_changes(const AdapterConfig& config, std::uint64_t tokens, std::uint64_t width) {
  const Json* types = config.find("cpt_tokens_type_mask");
  if (types != nullptr && (!types->is_list() || types->list().size() != tokens)) {
    throw Error(Errc::mismatch, "\"cpt_tokens_type_mask\" is no list of " + std::to_string(tokens) +
                                    " types, one for each token of the prompt")
        .hint("is this the adapter_config.json that belongs to the weights?");
  }
  const double root = std::sqrt(config.number("token_dim", static_cast<double>(width)) / 2048);
  const auto format = static_cast<float>(config.number("opt_projection_format_epsilon", 0.1) * root);
  const auto input = static_cast<float>(config.number("opt_projection_epsilon", 0.1) * root);
  std::vector<float> longest;
  for (std::uint64_t i = 0; i < tokens; ++i) {
    const std::int64_t type = types == nullptr ? 1 : types->list()[i].integer();
    const std::int64_t kind = type <= 0 ? 0 : type % 4;
    longest.push_back(kind == 0 ? 1e-10f : kind == 2 ? input : format);
  }
  return longest;
}

// embedding + delta_embedding, whose rows are cut to their longest.
Tensor learned_context(const Tensor& embedding, const Tensor& change, const AdapterConfig& config) {
  if (embedding.rank() != 2 || change.shape() != embedding.shape()) {
    throw Error(Errc::mismatch, "delta_embedding has the shape " + to_string(change.shape()) +
                                    ", where embedding has " + to_string(embedding.shape()))
        .hint("was the file saved whole?");
  }
  const std::uint64_t tokens = embedding.shape()[0], width = embedding.shape()[1];
  const DType dtype = embedding.dtype() == change.dtype() ? embedding.dtype() : DType::f32;
  const Tensor sum =
      computed(DType::f32, embedding.shape(), "what CPT learned, added", {embedding, change},
               [width, longest = longest_changes(config, tokens, width)](const std::vector<Tensor>& from) {
                 std::vector<float> values = floats_of(from[0]);
                 const std::vector<float> learned = floats_of(from[1]);
                 for (std::size_t row = 0; row < longest.size(); ++row) {
                   double squares = 0;
                   for (std::size_t i = row * width; i < (row + 1) * width; ++i)
                     squares += static_cast<double>(learned[i]) * static_cast<double>(learned[i]);
                   const auto length = static_cast<float>(std::sqrt(squares));
                   const float factor = length > 0 ? longest[row] / std::max(length, longest[row]) : 1;
                   for (std::size_t i = row * width; i < (row + 1) * width; ++i) values[i] += learned[i] * factor;
                 }
                 return bytes_of_floats(values);
               });
  return sum.to(dtype);
}

Tensor prompt_embeddings(Encoder& encoder, const PeftType& type, const AdapterConfig& config) {
  const Tensor *embedding = encoder.find("embedding.weight"), *change = encoder.find("delta_embedding.weight");
  if (type.name == "CARTRIDGE") {
    const Tensor *frozen = encoder.find("frozen_embedding"), *trained = encoder.find("trainable_embedding");
    return frozen == nullptr ? *trained : concatenated({*frozen, *trained}, 0);
  }
  if (type.name == "CPT" && change != nullptr) return learned_context(*embedding, *change, config);
  encoder.begin();
  encoder.add_lstm();
  encoder.add_linears("mlp_head", false);
  encoder.add_linears("transform", true);
  return encoder.output();
}

}  // namespace

std::string_view first_of_encoder(const PeftType& type) {
  return type.name == "CARTRIDGE" ? "trainable_embedding" : "embedding.weight";
}

StateDict encoder_of(const StateDict& file, const PeftType& type, const AdapterConfig& config) {
  StateDict encoder;
  for (const auto& [name, tensor] : file) {
    if (!has_word(type.layer, name)) continue;
    if (name != "prompt_embeddings") {
      encoder.insert(name, tensor);
      continue;
    }
    if (type.name == "CARTRIDGE") {
      const double frozen = config.number("num_frozen_tokens", 1);
      const std::uint64_t tokens = tensor.rank() == 2 ? tensor.shape()[0] : 0;
      if (!(frozen >= 0) || frozen > static_cast<double>(tokens)) {
        throw Error(Errc::mismatch, "the cartridge has " + std::to_string(tokens) + " tokens, of which " +
                                        to_string(Json(frozen)) + " are to be frozen")
            .hint("correct \"num_frozen_tokens\" in adapter_config.json");
      }
      const auto first = static_cast<std::uint64_t>(frozen);
      if (first != 0) encoder.insert("frozen_embedding", dimension_range(tensor, 0, 0, first));
      encoder.insert("trainable_embedding", dimension_range(tensor, 0, first, tokens - first));
      continue;
    }
    encoder.insert("embedding.weight", tensor);
    // What was learned is in the other table already.
    if (type.name == "CPT")
      encoder.insert("delta_embedding.weight",
                     Tensor::from_values<float>(DType::f32, tensor.shape(), std::vector<float>(tensor.numel())));
  }
  return encoder;
}

StateDict prompt_of(const StateDict& state, const PeftType& type, const AdapterConfig& config,
                    std::string_view adapter) {
  const std::string prefix = "prompt_encoder." + std::string(adapter) + ".";
  Encoder encoder(state, prefix);
  if (encoder.find(std::string(first_of_encoder(type))) == nullptr) {
    throw Error(Errc::not_found, "there is no prompt encoder " + quote(adapter) + " of the type " +
                                     std::string(type.name) + " in the state dict")
        .hint("give the adapter's name with --name");
  }
  StateDict file;
  file.insert("prompt_embeddings", prompt_embeddings(encoder, type, config));
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(prefix) && has_word(type.layer, name.substr(prefix.size())))
      file.insert(name.substr(prefix.size()), tensor);
  }
  return file;
}

}  // namespace ballast::adapter
