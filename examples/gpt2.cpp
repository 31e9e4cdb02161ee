// A transformer shaped as GPT-2 is, with weights from any checkpoint: gpt2 MODEL HEADS TOKEN...
//
// Prints the scores of the next token. Plain loops: the point is how the weights get here. A .pt, a .safetensors and a
// .gguf file of one model give the same numbers.
#include <ballast/ballast.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace {

using ballast::Tensor;
using Row = std::vector<float>;

struct Norm {
  Tensor weight, bias;

  Row operator()(const Row& x) const {
    const auto scale = weight.as<float>(), shift = bias.as<float>();
    float mean = 0, variance = 0;
    for (const float v : x) mean += v / static_cast<float>(x.size());
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<float>(x.size());
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5F) * scale[i] + shift[i];
    return y;
  }
};
BALLAST_FIELDS(Norm, weight, bias)

// GPT-2 keeps its matrices as [in, out].
struct Linear {
  Tensor weight, bias;

  Row operator()(const Row& x) const {
    const auto matrix = weight.as<float>(), shift = bias.as<float>();
    Row y(shift.begin(), shift.end());
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t o = 0; o < y.size(); ++o) y[o] += x[i] * matrix[i * y.size() + o];
    }
    return y;
  }
};
BALLAST_FIELDS(Linear, weight, bias)

struct Attention {
  Linear c_attn, c_proj;
};
BALLAST_FIELDS(Attention, c_attn, c_proj)

struct Mlp {
  Linear c_fc, c_proj;
};
BALLAST_FIELDS(Mlp, c_fc, c_proj)

struct Block {
  Norm ln_1, ln_2;
  Attention attn;
  Mlp mlp;
};
BALLAST_FIELDS(Block, ln_1, ln_2, attn, mlp)

struct Embedding {
  Tensor weight;

  std::size_t width() const { return weight.shape()[1]; }
  Row operator()(std::size_t number) const {
    const auto all = weight.as<float>();
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(number * width());
    return Row(first, first + static_cast<std::ptrdiff_t>(width()));
  }
};
BALLAST_FIELDS(Embedding, weight)

struct Gpt2 {
  Embedding wte, wpe;
  std::vector<Block> h;
  Norm ln_f;
};
BALLAST_FIELDS(Gpt2, wte, wpe, h, ln_f)

float gelu(float x) { return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x))); }

void add(Row& x, const Row& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// What the last row of one head sees of those before it and of itself.
void attend(const std::vector<Row>& qkv, std::size_t row, std::size_t first, std::size_t size, Row& out) {
  const std::size_t width = qkv[0].size() / 3;
  Row scores(row + 1);
  float sum = 0;
  for (std::size_t other = 0; other <= row; ++other) {
    float dot = 0;
    for (std::size_t i = first; i < first + size; ++i) dot += qkv[row][i] * qkv[other][width + i];
    sum += scores[other] = std::exp(dot / std::sqrt(static_cast<float>(size)));
  }
  for (std::size_t other = 0; other <= row; ++other) {
    for (std::size_t i = first; i < first + size; ++i) out[i] += scores[other] / sum * qkv[other][2 * width + i];
  }
}

void run_block(const Block& block, std::vector<Row>& rows, std::size_t heads) {
  std::vector<Row> qkv;
  for (const Row& row : rows) qkv.push_back(block.attn.c_attn(block.ln_1(row)));
  const std::size_t width = rows[0].size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row seen(width, 0.0F);
    for (std::size_t head = 0; head < heads; ++head) attend(qkv, i, head * (width / heads), width / heads, seen);
    add(rows[i], block.attn.c_proj(seen));
    Row inner = block.mlp.c_fc(block.ln_2(rows[i]));
    for (float& value : inner) value = gelu(value);
    add(rows[i], block.mlp.c_proj(inner));
  }
}

Row next_token_scores(const Gpt2& model, const std::vector<std::size_t>& tokens, std::size_t heads) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(model.wte(tokens[i]));
    add(rows.back(), model.wpe(i));
  }
  for (const Block& block : model.h) run_block(block, rows, heads);
  const Row last = model.ln_f(rows.back());
  Row scores;
  for (std::size_t token = 0; token < model.wte.weight.shape()[0]; ++token) {
    float dot = 0;
    const Row row = model.wte(token);
    for (std::size_t i = 0; i < row.size(); ++i) dot += last[i] * row[i];
    scores.push_back(dot);
  }
  return scores;
}

Gpt2 load_model(const char* path) {
  ballast::Checkpoint checkpoint = ballast::open(path);
  // llama.cpp has names of its own, and transposes.
  if (checkpoint.format == ballast::Format::gguf)
    checkpoint = ballast::to_names(std::move(checkpoint), ballast::NameStyle::huggingface);
  Gpt2 model;
  while (checkpoint.contains("h." + std::to_string(model.h.size()) + ".ln_1.weight") ||
         checkpoint.contains("transformer.h." + std::to_string(model.h.size()) + ".ln_1.weight"))
    model.h.emplace_back();
  // Whatever the file has, as floats in memory of their own; "transformer." is found by itself.
  ballast::LoadStateDictOptions options;
  options.assign = false;
  options.dtype_policy = ballast::DTypePolicy::to_one;
  options.ignore_unexpected = {"*.attn.bias", "*.attn.masked_bias", "lm_head.weight"};
  ballast::load_state_dict(model, std::move(checkpoint), options);
  return model;
}

}  // namespace

int main(int count, char** words) try {
  if (count < 4) {
    std::fputs("usage: gpt2 MODEL HEADS TOKEN...\n", stderr);
    return 2;
  }
  const Gpt2 model = load_model(words[1]);
  const std::size_t heads = std::strtoul(words[2], nullptr, 10);
  std::vector<std::size_t> tokens;
  for (int i = 3; i < count; ++i) tokens.push_back(std::strtoul(words[i], nullptr, 10));
  const bool fits = tokens.size() <= model.wpe.weight.shape()[0] && heads != 0 && model.wte.width() % heads == 0;
  for (const std::size_t token : tokens) {
    if (!fits || token >= model.wte.weight.shape()[0]) {
      std::fputs("gpt2: these are not heads and tokens of this model\n", stderr);
      return 2;
    }
  }
  for (const float score : next_token_scores(model, tokens, heads)) std::printf("%.6g\n", static_cast<double>(score));
} catch (const ballast::Error& error) {
  std::fprintf(stderr, "gpt2: %s\n", error.what());
  return 1;
}
