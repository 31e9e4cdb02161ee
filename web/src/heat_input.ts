// How a heat map is told what to show: its controls, the pointer, keys.

import {choice, h, hideTip, replace, showTip} from './dom';
import type {HeatMap} from './heat';
import {numberText} from './text';

export type Cells = 'extreme' | 'mean' | 'rms';

export const HOWS: {value: Cells; label: string; title: string}[] = [
  {value: 'extreme', label: 'Extreme', title: 'the value of largest magnitude in each cell'},
  {value: 'mean', label: 'Mean', title: 'the mean of each cell'},
  {value: 'rms', label: 'RMS', title: 'the root of the mean square of each cell'},
];

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
    const cell = heat.cellAt(x, y);
    showTip(event.clientX, event.clientY, numberText(cell.value, 7), [
      ['row', cell.rows],
      ['column', cell.columns],
      ['', cell.exact ? 'this value' : HOWS.find((how) => how.value === heat.how)!.title],
    ]);
  });
  heat.canvas.addEventListener('pointerleave', hideTip);
  heat.canvas.addEventListener('keydown', (event) => {
    const actions: Record<string, () => void> = {
      '+': () => heat.zoom(1.5, 0.5, 0.5),
      '=': () => heat.zoom(1.5, 0.5, 0.5),
      '-': () => heat.zoom(1 / 1.5, 0.5, 0.5),
      'ArrowLeft': () => heat.move(-0.2, 0),
      'ArrowRight': () => heat.move(0.2, 0),
      'ArrowUp': () => heat.move(0, -0.2),
      'ArrowDown': () => heat.move(0, 0.2),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
