// Small checkpoints for the tests of the page.
import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {deflateRawSync} from 'node:zlib';

export const HOSTILE = '</script><script>alert("name")</script>\u202e<img src=x onerror=alert(1)>';

/** A safetensors file of {name: [dtype, shape, values]}; values of F32 are numbers, of other dtypes bytes. */
export function write(folder, file, tensors, metadata = {}) {
  // Without a prototype, "__proto__" is a name like others.
  const header = Object.assign(Object.create(null), {__metadata__: metadata}),
    parts = [];
  let at = 0;
  for (const [name, [dtype, shape, values]] of Object.entries(tensors)) {
    const bytes = dtype === 'F32' ? Buffer.from(new Float32Array(values).buffer) : Buffer.from(values);
    header[name] = {dtype, shape, data_offsets: [at, (at += bytes.length)]};
    parts.push(bytes);
  }
  return writeWhole(join(folder, file), header, Buffer.concat(parts));
}

export function writeWhole(path, header, data) {
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([size, text, data]));
  return path;
}

/** A zip of one deflated member, as np.savez_compressed writes it. */
export function writeZip(path, name, bytes) {
  const packed = deflateRawSync(bytes),
    fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(8, 4);
  fields.writeUInt32LE(crc32(bytes), 10);
  fields.writeUInt32LE(packed.length, 14);
  fields.writeUInt32LE(bytes.length, 18);
  fields.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), fields, Buffer.from(name), packed]);
  const central = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), fields, Buffer.alloc(14), Buffer.from(name)]);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  writeFileSync(path, Buffer.concat([local, central, end]));
  return path;
}

export function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; ++k) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** Numbers from -scale to scale, the same each time. */
export function numbers(count, scale = 1, seed = 1) {
  const values = [];
  for (let state = seed; values.length < count;) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    values.push((state / 0x40000000 - 1) * scale);
  }
  return values;
}

/** A small transformer of which layer 3 was never trained, and layer 4 has a NaN. */
export function model({layers = 6, change = 0, broken = true} = {}) {
  const tensors = {'model.embed.weight': ['F32', [40, 16], numbers(640)]};
  for (let i = 0; i < layers; ++i) {
    const up = broken && i === 3 ? Array(512).fill(0) : numbers(512, 1 + i / 10 + change, i + 2),
      down = numbers(512, 1, i + 50);
    if (broken && i === 4) down[7] = NaN;
    tensors[`model.layers.${i}.mlp.up.weight`] = ['F32', [32, 16], up];
    tensors[`model.layers.${i}.mlp.down.weight`] = ['F32', [16, 32], down];
    tensors[`model.layers.${i}.norm.weight`] = ['F16', [16], Buffer.alloc(32, 0x3c)];
  }
  return tensors;
}

/** A LoRA of four modules, and the model that it belongs to. */
export function writeAdapter(folder) {
  const config = {peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules: ['q'], base_model_name_or_path: 'x'};
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  const adapter = {},
    base = {};
  for (let i = 0; i < 4; ++i) {
    adapter[`base_model.model.l.${i}.q.lora_A.weight`] = ['F32', [2, 8], numbers(16)];
    adapter[`base_model.model.l.${i}.q.lora_B.weight`] = ['F32', [8, 2], numbers(16, i + 1)];
    base[`l.${i}.q.weight`] = ['F32', [8, 8], numbers(64, 1, i + 9)];
  }
  write(folder, 'adapter_model.safetensors', adapter);
  mkdirSync(join(folder, 'base'));
  return {adapter: folder, base: write(join(folder, 'base'), 'model.safetensors', base)};
}

/** A hundred thousand small tensors, of a mixture of many experts. */
export function writeMany(path) {
  const header = {};
  let at = 0;
  const add = (name) => {
    header[name] = {dtype: 'BF16', shape: [2, 2], data_offsets: [at, (at += 8)]};
  };
  for (let layer = 0; layer < 70; ++layer) {
    for (let expert = 0; expert < 470; ++expert) {
      for (const role of ['up', 'gate', 'down']) add(`model.layers.${layer}.mlp.experts.${expert}.${role}_proj.weight`);
    }
    for (let k = 0; k < 20; ++k) add(`model.layers.${layer}.part_${k}.weight`);
  }
  return {path: writeWhole(path, header, Buffer.alloc(at)), count: Object.keys(header).length};
}
