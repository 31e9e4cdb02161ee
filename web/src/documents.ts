// What the documents of a page look like: those of the verbs with --json, and "ballast.view/1". Only what the page uses.

/** A number of JSON, or one that JSON cannot write ("NaN"), as text. */
export type Numeric = number | string | null;

export interface SideDocument {
  target: string;
  format: string;
  remote: boolean;
  quantization: Quantization | null;
  dequantized?: string; // the scheme that weights were kept in
  files: {file: string; bytes: number}[];
  names: string[];
  dtypes: string[];
  dtype: number[];
  shapes: number[][];
  shape: number[];
  bytes: number[];
  in_files: string[];
  in_file: number[];
  offset: number[];
  odd: Record<number, Oddity>;
}

/** How weights are kept, if the tensors are what these are packed in. */
export interface Quantization {
  scheme: string;
  bits?: number;
  group_size?: number;
  modules: number;
  parts: number;
  bytes_after?: number;
  dtype_after?: string;
}

export interface Oddity {
  strides?: number[];
  layout?: string;
  alias_of?: string;
  data?: boolean;
  packed?: boolean;
}

export interface ModelDocument {
  served: boolean;
  root: string;
  dequantize: boolean;
  view: string | null;
  adapter: boolean;
  base: string | null;
  sides: SideDocument[];
}

export interface StatsRow {
  dtype: string;
  supported: boolean;
  why_not?: string;
  [key: string]: unknown;
}

export interface StatsColumns {
  sample: number;
  bins: number;
  min: string;
  max: string;
  mean: string;
  std: string;
  l2: string;
  zeros: Record<number, number>;
  nans: Record<number, number>;
  infinities: Record<number, number>;
  counts: Record<number, number>;
  why_not: Record<number, string>;
  histograms: string;
}

export interface Change {
  name: string;
  what: string;
  dtype_a: string;
  dtype_b: string;
  shape_a: number[];
  shape_b: number[];
  relative_change?: Numeric;
  norm_change: number;
  cosine?: Numeric;
  different?: number;
  nan_mismatch?: number;
  max_abs?: Numeric;
  max_at?: number[];
}

export interface Diff {
  equal: boolean;
  equal_tensors: number;
  changed: Change[];
  only_in_a: string[];
  only_in_b: string[];
  names?: string;
  prefix?: string;
  overall?: {relative_change: Numeric; cosine: Numeric};
  dtype_costs?: {dtype_a: string; dtype_b: string; tensors: number; relative_change: Numeric; worst: Numeric}[];
}

export interface Scale {
  rank: Numeric;
  alpha: Numeric;
  scaling: Numeric;
  modules: Numeric;
}

export interface AdapterDocument {
  type: string | null;
  possible_types?: string[];
  variants?: string[];
  dialect: string;
  base_model: string | null;
  tensors: number;
  parameters: number;
  bytes: number;
  merge?: {formula?: string; why_not?: string};
  scales?: Scale[];
  problems?: {text: string; hint: string | null}[];
}

export interface Module {
  name: string;
  rank: number;
  alpha: number;
  scaling: number;
  norm: number;
  share: number | null;
  effective_rank: number;
}

export interface Info {
  format?: string;
  files?: unknown[];
  tensors?: number;
  parameters?: number;
  bytes?: number;
  dtypes?: Record<string, {tensors: number}>;
  quantization?: Quantization;
  dequantized?: string;
  wasted_bytes?: number;
  tied?: string[][];
  notes?: (string | {text: string})[];
  model?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  values?: PlainValue[];
}

export interface PlainValue {
  path: string;
  type: string;
  value: unknown;
}

export interface Texts {
  files?: TextFile[];
  fields?: {key: string; value: unknown; type: string}[];
}

export interface TextFile {
  name: string;
  text: string;
  bytes: number;
  cut?: boolean; // the text is only the beginning
}

export interface Scan {
  safe: boolean | null;
  globals: {module: string; name: string; verdict: string; use?: string; why?: string; member?: string; offset: number}[];
  findings: {where?: string; file?: string; verdict: string; what: string; offset?: number | null}[];
}

export interface Spectrum {
  values: number[];
  complete: boolean;
  of: number;
  stable_rank: number;
  of_90?: number;
  of_99?: number;
}
