// How a heat map is told what to show: its controls, the pointer, keys.

import {choice, h, hideTip, replace, say, showTip} from './dom';
import type {HeatMap} from './heat';
import {numberText} from './text';

export type Cells = 'extreme' | 'mean' | 'rms';

export const HOWS: {value: Cells; label: string; title: string}[] = [
  {value: 'extreme', label: 'Extreme', title: 'the value of largest magnitude in each cell'},
  {value: 'mean', label: 'Mean', title: 'the mean of each cell'},
  {value: 'rms', label: 'RMS', title: 'the root of the mean square of each cell'},
];

const ARROWS = [
  ['ArrowLeft', 0, -1],
  ['ArrowRight', 0, 1],
  ['ArrowUp', -1, 0],
  ['ArrowDown', 1, 0],
] as const;

export function drawControls(heat: HeatMap): void {
  const spare = heat.shape.map((size, axis) => [size, axis]).filter(([, axis]) => !heat.axes.includes(axis));
  const pick = (which: 0 | 1): HTMLElement =>
    h(
      'select',
      {
        'aria-label': which ? 'columns' : 'rows',
        'onchange': (event) => {
          const axis = Number((event.target as HTMLSelectElement).value),
            other = heat.axes[1 - which];
          heat.axes[which] = axis;
          if (other === axis) heat.axes[1 - which] = heat.shape.findIndex((_, a) => a !== axis);
          heat.whole();
          heat.start();
        },
      },
      heat.shape.map((size, axis) => h('option', {value: axis, selected: heat.axes[which] === axis}, `dim ${axis} (${size})`)),
    );
  replace(
    heat.controls,
    choice('Cells', HOWS, heat.how, (value) => {
      heat.how = value;
      drawControls(heat);
      heat.load();
    }),
    heat.shape.length > 2 ? [pick(0), '×', pick(1)] : null,
    spare.map(([size, axis]) =>
      h(
        'label',
        {},
        `[${axis}] `,
        h('input', {
          type: 'number',
          min: 0,
          max: size - 1,
          value: heat.at[axis],
          onchange: (event) => {
            heat.at[axis] = Math.min(Math.max(0, Math.trunc(Number((event.target as HTMLInputElement).value) || 0)), size - 1);
            heat.load();
          },
        }),
      ),
    ),
    h(
      'button',
      {
        type: 'button',
        onclick: () => {
          heat.whole();
          heat.load();
        },
      },
      'Whole',
    ),
  );
}

export function listenToHeat(heat: HeatMap): void {
  const part = (event: MouseEvent): [number, number] => {
    const box = heat.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  let timer = 0,
    place = '', // whose value is asked for
    text = ''; // that value
  /** Says what is at a place of the picture: in the tip beside a place of the screen, and to who cannot see it. */
  const tell = (x: number, y: number, left: number, top: number, isSaid = false): void => {
    const {value, rows, columns, exact, first} = heat.cellAt(x, y);
    const show = (title: string, what: string): void => {
      showTip(left, top, title, [
        ['row', rows],
        ['column', columns],
        ['', what],
      ]);
      if (isSaid) say(`${title}, row ${rows}, column ${columns}`);
    };
    if (String(first) !== place || !exact) {
      clearTimeout(timer);
      place = text = '';
    }
    if (!exact) return show(numberText(value, 7), HOWS.find((how) => how.value === heat.how)!.title + (heat.isRounded ? ', as F32' : ''));
    if (!heat.isRounded) return show(numberText(value, 7), 'this value');
    if (text) return show(text, 'this value');
    show(numberText(value, 7), 'rounded to F32');
    if (place) return; // asked already
    place = String(first);
    timer = window.setTimeout(() => {
      const asked = place;
      heat.valueAt(...first).then(
        (answer) => asked === place && show((text = answer), 'this value'),
        () => {},
      );
    }, 120);
  };
  const leave = (): void => {
    clearTimeout(timer);
    place = '';
    hideTip();
  };
  const step = (down: number, right: number): void => {
    if (!heat.grid) return;
    const [x, y] = heat.step(down, right),
      box = heat.canvas.getBoundingClientRect();
    tell(x, y, box.left + x * box.width, box.top + y * box.height, true);
  };
  let drag: [number, number] | null = null;
  heat.canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      heat.zoom(Math.exp(-event.deltaY * 0.003), ...part(event));
    },
    {passive: false},
  );
  heat.canvas.addEventListener('pointerdown', (event) => {
    drag = part(event);
    heat.canvas.setPointerCapture(event.pointerId);
  });
  heat.canvas.addEventListener('pointerup', () => {
    drag = null;
  });
  heat.canvas.addEventListener('pointermove', (event) => {
    if (!heat.grid) return;
    const [x, y] = part(event);
    if (drag) {
      heat.move(drag[0] - x, drag[1] - y);
      drag = [x, y];
      return hideTip();
    }
    tell(x, y, event.clientX, event.clientY);
  });
  heat.canvas.addEventListener('pointerleave', leave);
  heat.canvas.addEventListener('blur', leave);
  heat.canvas.addEventListener('keydown', (event) => {
    const actions: Record<string, () => void> = {
      '+': () => heat.zoom(1.5, 0.5, 0.5),
      '=': () => heat.zoom(1.5, 0.5, 0.5),
      '-': () => heat.zoom(1 / 1.5, 0.5, 0.5),
    };
    for (const [key, down, right] of ARROWS)
      actions[key] = () => (event.shiftKey ? heat.move(0.2 * right, 0.2 * down) : step(down, right));
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
