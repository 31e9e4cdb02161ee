// Pictures of a page as PNG files of at most 256 colours, which take half the bytes of those that the browser writes.
import {deflateSync, inflateSync} from 'node:zlib';
import {crc32} from './checkpoints.mjs';

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** A picture as the browser writes it, as colours from 0 to 0xffffff: 8 bits a channel, not interlaced, with alpha or without. */
export function decoded(png) {
  const width = png.readUInt32BE(16),
    height = png.readUInt32BE(20),
    channels = {2: 3, 6: 4}[png[25]],
    parts = [];
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const lines = inflateSync(Buffer.concat(parts)),
    row = width * channels;
  const colors = new Uint32Array(width * height);
  let above = Buffer.alloc(row);
  for (let y = 0; y < height; ++y) {
    const filter = lines[y * (row + 1)],
      line = lines.subarray(y * (row + 1) + 1, (y + 1) * (row + 1));
    for (let i = 0; i < row; ++i) {
      const left = i < channels ? 0 : line[i - channels],
        corner = i < channels ? 0 : above[i - channels];
      line[i] += [0, left, above[i], (left + above[i]) >> 1, nearestOf(left, above[i], corner)][filter];
    }
    for (let x = 0; x < width; ++x) colors[y * width + x] = line.readUIntBE(x * channels, 3);
    above = line;
  }
  return {width, height, colors};
}

/** Whichever of the three comes closest to a plane through them. */
function nearestOf(left, up, corner) {
  const far = [up - corner, left - corner, left + up - 2 * corner].map(Math.abs);
  return far[0] <= far[1] && far[0] <= far[2] ? left : far[1] <= far[2] ? up : corner;
}

const distance = (a, b) => ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;

/** The most frequent colours, none of them close to another: as close as lets 256 stand for all. */
function paletteOf(colors) {
  const counts = new Map();
  for (const color of colors) counts.set(color, (counts.get(color) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([color]) => color);
  for (let apart = 0; ; apart += 2) {
    const palette = [];
    for (const color of sorted) {
      if (palette.length <= 256 && !palette.some((other) => distance(color, other) < apart)) palette.push(color);
    }
    if (palette.length <= 256) return {palette, sorted};
  }
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]),
    ends = [Buffer.alloc(4), Buffer.alloc(4)];
  ends[0].writeUInt32BE(data.length);
  ends[1].writeUInt32BE(crc32(body));
  return Buffer.concat([ends[0], body, ends[1]]);
}

/** The same picture with a palette. */
export function withPalette(png) {
  const {width, height, colors} = decoded(png),
    {palette, sorted} = paletteOf(colors);
  const nearest = (color) => palette.reduce((best, other, i) => (distance(color, other) < distance(color, palette[best]) ? i : best), 0);
  const places = new Map(sorted.map((color) => [color, nearest(color)]));
  const head = Buffer.from([...png.subarray(16, 24), 8, 3, 0, 0, 0]); // as large, 8 bits, a palette
  const lines = Buffer.alloc(height * (width + 1)); // each with a first byte for "no filter"
  colors.forEach((color, i) => (lines[i + Math.floor(i / width) + 1] = places.get(color)));
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', head),
    chunk('PLTE', Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]))),
    chunk('IDAT', deflateSync(lines, {level: 9})),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
