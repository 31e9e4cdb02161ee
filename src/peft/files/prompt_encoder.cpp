// A prompt encoder is a table of embeddings, which some methods send through layers while they train. P-tuning has two
// or three linear layers, and sometimes an LSTM before them; prefix tuning has two with a tanh between them. Shapes are
// checked at once, values are read when the prompt is.
#include <ballast/error.hpp>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"
#include "peft/computed.hpp"
#include "peft/files/special.hpp"
#include "peft/hints.hpp"
#include "peft/matrix.hpp"

namespace ballast::peft {
namespace {

// A vector is one row here.
Matrix row_or_matrix(const Tensor& tensor) {
  return tensor.rank() == 1 ? read_matrix(tensor, {1, tensor.numel()}) : read_matrix(tensor);
}

// input · weightᵀ + bias
Matrix linear(const Matrix& input, const Matrix& weight, const Matrix& bias) {
  Matrix output({input.rows(), weight.rows()});
  for (std::size_t i = 0; i < input.rows(); ++i) {
    for (std::size_t j = 0; j < weight.rows(); ++j) {
      double sum = static_cast<double>(bias(0, j));
      for (std::size_t k = 0; k < input.columns(); ++k)
        sum += static_cast<double>(input(i, k)) * static_cast<double>(weight(j, k));
      output(i, j) = static_cast<float>(sum);
    }
  }
  return output;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer of torch.nn.LSTM, whose gates are in the order i, f, g, o. `weights` are weight_ih,
// weight_hh, bias_ih and bias_hh; the result goes into columns of `output` from `column` on.
void lstm(const Matrix& input, std::span<const Matrix> weights, bool backwards, Matrix& output, std::size_t column) {
  const std::size_t size = weights[1].columns();
  Matrix hidden({1, size});
  std::vector<float> cell(size);
  const Matrix gates_of_input = linear(input, weights[0], weights[2]);
  for (std::size_t step = 0; step < input.rows(); ++step) {
    const std::size_t i = backwards ? input.rows() - 1 - step : step;
    const Matrix gates_of_hidden = linear(hidden, weights[1], weights[3]);
    const auto gate = [&](std::size_t which, std::size_t j) {
      return gates_of_input(i, which * size + j) + gates_of_hidden(0, which * size + j);
    };
    for (std::size_t j = 0; j < size; ++j) {
      cell[j] = sigmoid(gate(1, j)) * cell[j] + sigmoid(gate(0, j)) * std::tanh(gate(2, j));
      hidden(0, j) = sigmoid(gate(3, j)) * std::tanh(cell[j]);
      output(i, column + j) = hidden(0, j);
    }
  }
}

class Encoder {
 public:
  Encoder(const StateDict& state, const std::string& prefix) : state_(state), prefix_(prefix) {}

  Tensor output() {
    const Tensor& embedding = *find("embedding.weight");
    if (embedding.rank() != 2 || embedding.numel() == 0)
      throw Error(Errc::malformed, "the embeddings of a prompt encoder must be a matrix, and not an empty one");
    width_ = embedding.shape()[1];
    add_lstm();
    add_linears("mlp_head", false);
    add_linears("transform", true);
    if (steps_.empty()) return embedding;
    tensors_.push_back(embedding);
    return computed(DType::f32, {embedding.shape()[0], width_}, "prompt encoder", tensors_,
                    [steps = steps_](const std::vector<Tensor>& from) { return to_bytes(run(steps, from)); });
  }

 private:
  struct Step {
    enum class Kind : std::uint8_t { linear, lstm } kind;
    std::size_t first;        // of its tensors
    bool activates, is_tanh;  // what is done to the input
  };

  // "mlp_head.0", "mlp_head.2", ...
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
                                          std::to_string(gates) + " rows of weights, which are not 4 gates")
              .hint(kWasItSavedWhole);
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

  static std::vector<float> run(const std::vector<Step>& steps, const std::vector<Tensor>& from) {
    Matrix value = read_matrix(from.back());
    for (const Step& step : steps) {
      const std::size_t count = step.kind == Step::Kind::linear ? 2 : 8;
      std::vector<Matrix> weights;
      for (std::size_t i = 0; i < count; ++i) weights.push_back(row_or_matrix(from[step.first + i]));
      if (step.activates) {
        for (float& x : value.values()) x = step.is_tanh ? std::tanh(x) : std::max(x, 0.0f);
      }
      if (step.kind == Step::Kind::linear) {
        value = linear(value, weights[0], weights[1]);
        continue;
      }
      const std::size_t size = weights[1].columns();
      Matrix output({value.rows(), 2 * size});
      lstm(value, std::span(weights).first(4), false, output, 0);
      lstm(value, std::span(weights).subspan(4), true, output, size);
      value = std::move(output);
    }
    return {value.values().begin(), value.values().end()};
  }

  const Tensor* find(const std::string& name) const { return state_.find(prefix_ + name); }

  std::size_t take(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const Tensor* tensor = find(name);
      if (tensor == nullptr)
        throw Error(Errc::not_found, "the prompt encoder has no " + quote(prefix_ + name)).about(prefix_ + name);
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
  const std::string& prefix_;
  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::uint64_t width_ = 0;
};

}  // namespace

Tensor encoded_prompt(const StateDict& state, const std::string& prefix) { return Encoder(state, prefix).output(); }

}  // namespace ballast::peft
