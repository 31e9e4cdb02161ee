// Where tensors lie in the files: a bar for each, with holes and shared bytes.

import {h, hideTip, say, showTip, sized} from './dom';
import {go, store} from './state';
import type {Side} from './store';
import {bytesText, plural, visible} from './text';
import {themeColor} from './theme';

const SHARD_HEIGHT = 34;

type Span = [first: number, last: number, number: number];

/** A file, and where tensors lie in it, in bytes. */
interface Layout {
  file: string;
  bytes: number;
  spans: Span[];
  unplaced: number; // tensors that lie nowhere in a row
  isWhole: boolean; // every tensor of it has its place
  header: number;
  holes: number;
  shared: number;
  tail: number;
}

/** The tensors of a side by their files. */
function layoutOf(side: Side): Layout[] {
  const files = new Map(
    side.files.map(({file, bytes}): [string, Layout] => [
      file,
      {file, bytes, spans: [], unplaced: 0, isWhole: true, header: 0, holes: 0, shared: 0, tail: 0},
    ]),
  );
  let nowhere = 0; // tensors that are computed, or unpacked from one of the files
  for (let k = 0; k < side.count; ++k) {
    const file = files.get(side.file(k) ?? '');
    if (!file) {
      ++nowhere;
      continue;
    }
    if (side.offset[k] < 0) ++file.unplaced;
    else file.spans.push([side.offset[k], side.offset[k] + side.bytes[k], k]);
  }
  for (const file of files.values()) {
    if (files.size === 1) file.unplaced += nowhere;
    file.isWhole = file.unplaced === 0 && nowhere === 0;
    file.spans.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    let end = 0;
    file.spans.forEach((span, at) => {
      if (at === 0) file.header = span[0];
      else if (span[0] > end) file.holes += span[0] - end;
      if (at > 0 && span[0] < end) file.shared += Math.min(end, span[1]) - span[0];
      end = Math.max(end, span[1]);
    });
    // Bytes between the others may be those of tensors that lie nowhere in a row.
    if (!file.isWhole) file.holes = 0;
    else if (end) file.tail = Math.max(0, file.bytes - end);
  }
  return [...files.values()];
}

function shardBar(side: Side, file: Layout): HTMLElement {
  const canvas = h('canvas', {
    'class': 'shard',
    'role': 'img',
    'tabindex': 0,
    'aria-label': `${visible(file.file)}: ${plural(file.spans.length, 'tensor')} in ${bytesText(file.bytes)}`,
  });
  const box = h('div', {class: 'shard-box'}, canvas);
  let at = -1;
  const paint = (): void => {
    const width = box.clientWidth;
    if (!width) return;
    const c = sized(canvas, width, SHARD_HEIGHT),
      scale = width / Math.max(1, file.bytes);
    c.fillStyle = themeColor('hole');
    c.fillRect(0, 4, width, SHARD_HEIGHT - 8);
    if (file.header) {
      c.fillStyle = themeColor('header-bytes');
      c.fillRect(0, 4, Math.max(1, file.header * scale), SHARD_HEIGHT - 8);
    }
    let end = 0;
    const drawnTo = [-1, -1]; // what is alone, and what is shared
    for (const [first, last, k] of file.spans) {
      const x = first * scale,
        w = Math.max((last - first) * scale, 0.6),
        isShared = first < end;
      end = Math.max(end, last);
      if (x + w < drawnTo[Number(isShared)] + 0.5) continue; // less than a pixel, and drawn already
      c.fillStyle = store.dtypeColor(side.dtype(k));
      if (isShared) c.fillRect(x, SHARD_HEIGHT - 4, w, 4);
      else c.fillRect(x, 4, Math.max(w - (w > 3 ? 0.8 : 0), 0.6), SHARD_HEIGHT - 8);
      drawnTo[Number(isShared)] = x + w;
    }
    if (at >= 0) {
      const [first, last] = file.spans[at];
      c.strokeStyle = themeColor('focus');
      c.lineWidth = 2;
      c.strokeRect(first * scale + 1, 3, Math.max((last - first) * scale - 2, 1), SHARD_HEIGHT - 6);
    }
  };
  const spanAt = (event: MouseEvent): number => {
    const byte = ((event.clientX - canvas.getBoundingClientRect().left) / box.clientWidth) * file.bytes;
    return file.spans.findIndex(([first, last]) => byte >= first && byte < last);
  };
  canvas.addEventListener('pointermove', (event) => {
    const k = spanAt(event);
    if (k !== at) {
      at = k;
      paint();
    }
    canvas.style.cursor = k < 0 ? 'default' : 'pointer';
    if (k < 0) return showTip(event.clientX, event.clientY, 'no tensor', []);
    const [first, last, number] = file.spans[k];
    showTip(event.clientX, event.clientY, visible(side.names[number]), [
      ['bytes', `${first} – ${last}`],
      ['size', bytesText(last - first)],
      ['dtype', side.dtype(number)],
    ]);
  });
  canvas.addEventListener('pointerleave', () => {
    at = -1;
    hideTip();
    paint();
  });
  canvas.addEventListener('click', (event) => {
    const k = spanAt(event);
    if (k >= 0) go({tensor: store.numbers.get(side.names[file.spans[k][2]])});
  });
  canvas.addEventListener('keydown', (event) => {
    const step = ({ArrowRight: 1, ArrowLeft: -1} as Record<string, number>)[event.key];
    if (step) {
      event.preventDefault();
      at = Math.min(Math.max(at + step, 0), file.spans.length - 1);
      const [first, last, number] = file.spans[at];
      say(`${visible(side.names[number])}, bytes ${first} to ${last}`);
      paint();
    }
    if (event.key === 'Enter' && at >= 0) go({tensor: store.numbers.get(side.names[file.spans[at][2]])});
  });
  new ResizeObserver(paint).observe(box);
  return box;
}

export function shardsOf(side: Side): HTMLElement[] {
  return layoutOf(side).map((file) =>
    h(
      'div',
      {class: 'shard-row'},
      h('div', {class: 'shard-name'}, h('b', {}, visible(file.file)), h('span', {}, bytesText(file.bytes))),
      file.spans.length
        ? shardBar(side, file)
        : h('p', {class: 'hint'}, !file.isWhole ? 'Its tensors are packed, computed, or not in a row.' : 'It has no tensor.'),
      h(
        'p',
        {class: 'hint'},
        file.spans.length ? plural(file.spans.length, 'tensor') : '',
        file.header ? `, ${bytesText(file.header)} before the first` : '',
        file.holes ? `, ${bytesText(file.holes)} in holes` : '',
        file.shared ? `, ${bytesText(file.shared)} shared` : '',
        file.tail ? `, ${bytesText(file.tail)} behind the last` : '',
        file.unplaced && file.spans.length ? `, and ${plural(file.unplaced, 'tensor')} without a plain place` : '',
      ),
    ),
  );
}
