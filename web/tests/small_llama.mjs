// The models of the pictures in docs/view: a small transformer in three files, what training made of it, and an adapter
// of it. Each run writes the same bytes.
import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {write} from './checkpoints.mjs';

const LAYERS = 16,
  HIDDEN = 256,
  KEYS = 64,
  INNER = 704,
  WORDS = 4000,
  NEVER_TRAINED = 'model.layers.9.self_attn.v_proj.weight',
  TOO_LARGE = 'model.layers.12.mlp.up_proj.weight';

const CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  torch_dtype: 'bfloat16',
  hidden_size: HIDDEN,
  intermediate_size: INNER,
  num_hidden_layers: LAYERS,
  num_attention_heads: 4,
  num_key_value_heads: 1,
  vocab_size: WORDS,
};

/** Numbers with mean 0 and deviation 1, the same for the same seed. */
function normals(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

const rms = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);

const seedOf = (name) => [...name].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7);

/** A matrix as training leaves them: heads differ, and some columns are larger than others. */
function matrix(name, [rows, columns], deviation) {
  const next = normals(seedOf(name)),
    values = new Float32Array(rows * columns);
  const bands = Array.from({length: Math.ceil(rows / KEYS)}, () => 1 + 0.25 * Math.tanh(next())),
    scales = Array.from({length: columns}, () => Math.exp(0.4 * next()));
  for (let i = 0; i < values.length; ++i) {
    const row = Math.floor(i / columns);
    values[i] = deviation * bands[Math.floor(row / KEYS)] * scales[i % columns] * next();
  }
  // However the bands fall, the deviation is nearly the one that was asked for.
  const factor = (deviation * (1 + 0.01 * next())) / rms(values);
  return values.map((value) => value * factor);
}

function norm(name, mean) {
  const next = normals(seedOf(name));
  return Float32Array.from({length: HIDDEN}, () => mean + 0.1 * next());
}

/** The tensors of the model by name: [shape, values]. Norms stay F32, the rest is written as BF16. */
function tensors() {
  const all = new Map();
  const add = (name, shape, deviation) => all.set(name, [shape, matrix(name, shape, deviation)]);
  add('lm_head.weight', [WORDS, HIDDEN], 0.03);
  add('model.embed_tokens.weight', [WORDS, HIDDEN], 0.05);
  for (let i = 0; i < LAYERS; ++i) {
    const at = `model.layers.${i}.`,
      depth = i / (LAYERS - 1);
    for (const place of ['input', 'post_attention']) {
      const name = `${at}${place}_layernorm.weight`;
      all.set(name, [[HIDDEN], norm(name, 1 + 0.3 * depth)]);
    }
    add(at + 'mlp.down_proj.weight', [HIDDEN, INNER], 0.015 * (1 - 0.1 * depth));
    add(at + 'mlp.gate_proj.weight', [INNER, HIDDEN], 0.02 * (1 + 0.2 * depth * depth));
    add(at + 'mlp.up_proj.weight', [INNER, HIDDEN], 0.02);
    add(at + 'self_attn.k_proj.weight', [KEYS, HIDDEN], 0.02 + 0.009 * depth);
    add(at + 'self_attn.o_proj.weight', [HIDDEN, HIDDEN], 0.02 + 0.009 * Math.sqrt(depth));
    add(at + 'self_attn.q_proj.weight', [HIDDEN, HIDDEN], 0.02 + 0.009 * depth);
    add(at + 'self_attn.v_proj.weight', [KEYS, HIDDEN], 0.02 + 0.009 * depth);
  }
  all.get(NEVER_TRAINED)[1].fill(0);
  all.set(TOO_LARGE, [[INNER, HIDDEN], all.get(TOO_LARGE)[1].map((value) => value * 9)]);
  all.set('model.norm.weight', [[HIDDEN], norm('model.norm.weight', 1)]);
  return all;
}

function bf16(values) {
  const bits = new Uint32Array(Float32Array.from(values).buffer);
  return Buffer.from(Uint16Array.from(bits, (word) => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16).buffer);
}

const stored = ([shape, values]) => (shape.length === 1 ? ['F32', shape, values] : ['BF16', shape, bf16(values)]);

/** Writes a model of three files and their index. */
function writeShards(folder, all) {
  mkdirSync(folder);
  const names = [...all.keys()],
    third = Math.ceil(names.length / 3),
    weight_map = {};
  for (let i = 0; i < 3; ++i) {
    const file = `model-0000${i + 1}-of-00003.safetensors`,
      here = names.slice(i * third, (i + 1) * third);
    for (const name of here) weight_map[name] = file;
    write(folder, file, Object.fromEntries(here.map((name) => [name, stored(all.get(name))])), {format: 'pt'});
  }
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({metadata: {}, weight_map}));
  writeFileSync(join(folder, 'config.json'), JSON.stringify(CONFIG));
}

/** The model after training: the deeper a layer, the more of it changed. Norms stay as they were, and so do zeros. */
function tuned(all) {
  const after = new Map();
  for (const [name, [shape, values]] of all) {
    const depth = Number(/layers\.(\d+)/.exec(name)?.[1] ?? 0) / (LAYERS - 1),
      strength = name === TOO_LARGE ? 0.04 : 0.03 + 0.45 * depth,
      step = shape.length === 1 ? 0 : strength * rms(values),
      next = normals(seedOf(name) + 1);
    after.set(name, [shape, values.map((value) => value + step * next())]);
  }
  return after;
}

/** A LoRA of three modules in each layer, of rank 8, not all of which is used. */
function writeLora(folder, all) {
  mkdirSync(folder);
  const config = {peft_type: 'LORA', r: 8, lora_alpha: 16, base_model_name_or_path: 'example/small-llama'};
  const modules = {'self_attn.q_proj': 0.005, 'self_attn.v_proj': 0.004, 'mlp.down_proj': 0.006},
    adapter = {};
  for (let i = 0; i < LAYERS; ++i) {
    for (const [module, strength] of Object.entries(modules)) {
      const name = `model.layers.${i}.${module}`,
        [[rows, columns]] = all.get(name + '.weight'),
        next = normals(seedOf(name) + 2),
        scale = strength * (1 + (2 * i) / LAYERS);
      const a = Array.from({length: 8 * columns}, () => 0.1 * next()),
        b = Array.from({length: rows * 8}, (_, j) => scale * 0.7 ** (j % 8) * next());
      adapter[`base_model.model.${name}.lora_A.weight`] = ['F32', [8, columns], a];
      adapter[`base_model.model.${name}.lora_B.weight`] = ['F32', [rows, 8], b];
    }
  }
  writeFileSync(
    join(folder, 'adapter_config.json'),
    JSON.stringify({...config, target_modules: Object.keys(modules).map((name) => name.split('.')[1])}),
  );
  write(folder, 'adapter_model.safetensors', adapter);
}

/** Writes the folders small-llama, tuned and lora. */
export function writeSmallLlama(folder) {
  const all = tensors();
  writeShards(join(folder, 'small-llama'), all);
  writeShards(join(folder, 'tuned'), tuned(all));
  writeLora(join(folder, 'lora'), all);
}
