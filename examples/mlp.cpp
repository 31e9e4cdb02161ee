// A classifier of two layers with weights from any checkpoint: mlp MODEL NUMBER...
//
// Its matrices are a type of its own, which Ballast fills without knowing more about it than TensorAccess says.
#include <ballast/ballast.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

struct Matrix {
  std::uint64_t rows = 0, columns = 1;
  std::vector<float> values;
};

template <>
struct ballast::TensorAccess<Matrix> {
  static DType dtype(const Matrix&) { return DType::f32; }
  static std::optional<Shape> shape(const Matrix&) { return std::nullopt; }  // any will do
  static std::span<std::byte> prepare(Matrix& matrix, DType, const Shape& shape) {
    matrix.rows = shape.rank() > 0 ? shape[0] : 1;
    matrix.columns = shape.rank() > 1 ? shape[1] : 1;
    matrix.values.resize(*shape.numel());
    return std::as_writable_bytes(std::span(matrix.values));
  }
  static std::span<const std::byte> bytes(const Matrix& matrix) { return std::as_bytes(std::span(matrix.values)); }
};

struct Linear {
  Matrix weight, bias;

  std::vector<float> operator()(const std::vector<float>& x) const {
    std::vector<float> y = bias.values;
    for (std::size_t row = 0; row < weight.rows; ++row) {
      for (std::size_t i = 0; i < x.size(); ++i) y[row] += weight.values[row * weight.columns + i] * x[i];
    }
    return y;
  }
};
BALLAST_FIELDS(Linear, weight, bias)

struct Classifier {
  Linear hidden, output;

  std::vector<float> operator()(const std::vector<float>& x) const {
    std::vector<float> y = hidden(x);
    for (float& value : y) value = std::max(value, 0.0F);
    return output(y);
  }
};
BALLAST_FIELDS(Classifier, hidden, output)

int main(int count, char** words) try {
  if (count < 3) {
    std::fputs("usage: mlp MODEL NUMBER...\n", stderr);
    return 2;
  }
  Classifier model;
  // Weights of any dtype become floats; anything missing or left over is an error that says so.
  ballast::load_state_dict(model, ballast::open(words[1]), {.dtype_policy = ballast::DTypePolicy::to_model});

  std::vector<float> x;
  for (int i = 2; i < count; ++i) x.push_back(std::strtof(words[i], nullptr));
  if (x.size() != model.hidden.weight.columns) {
    std::fprintf(stderr, "mlp: the model takes %llu numbers\n",
                 static_cast<unsigned long long>(model.hidden.weight.columns));
    return 2;
  }
  for (const float score : model(x)) std::printf("%.6g\n", static_cast<double>(score));
} catch (const ballast::Error& error) {
  std::fprintf(stderr, "mlp: %s\n", error.what());
  return 1;
}
