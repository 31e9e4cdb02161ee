// Elements. Everything that a file says becomes text here, never markup: there is no other way of making elements in
// these scripts, and the page's policy forbids markup from strings altogether.

export type Child = Node | string | number | false | null | undefined | Child[];

type Handlers = {[K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => unknown};
type Attributes = Handlers & {style?: Partial<CSSStyleDeclaration>; [name: string]: unknown};

/** h('p', {class: 'note', onclick: f}, 'text', child, …): null and false children are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** What is left of children when those that are nothing are gone. */
function flat(children: Child[]): (Node | string)[] {
  return (children.flat(Infinity as 1) as Child[])
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === 'number' ? String(child) : (child as Node | string)));
}

function filled<E extends HTMLElement | SVGElement>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value as EventListener);
    else if (key === 'style') Object.assign(element.style, value);
    else if (key === 'value') (element as unknown as HTMLInputElement).value = String(value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...flat(children));
  return element;
}

/** An element of the page that may not be there. */
export const find = (id: string): HTMLElement | null => document.getElementById(id);

/** An element that the page has. */
export function byId(id: string): HTMLElement {
  const element = find(id);
  if (!element) throw new Error('the page has no ' + id);
  return element;
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren(...flat(children));
}

/** A canvas of so many CSS pixels, sharp on every screen; the context draws in CSS pixels. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Says something to people who cannot see what changed. */
export function say(text: string): void {
  byId('said').textContent = text;
}

const labelOf = (element: Element): string | null => element.id || element.getAttribute('aria-label') || element.textContent;

/** Does work that may make elements anew, and gives the focus to what has taken the place of the element that had it. */
export function keepFocus(work: () => void): void {
  const before = document.activeElement;
  if (!before || before === document.body) return work();
  const group = before.parentElement && before.parentElement.closest('[aria-label], [id]');
  const label = labelOf(before),
    groupLabel = group && labelOf(group);
  work();
  if (before.isConnected) return;
  for (const element of document.getElementsByTagName(before.tagName)) {
    if (labelOf(element) !== label) continue;
    const around = element.parentElement!.closest('[aria-label], [id]');
    if ((around && labelOf(around)) === groupLabel) return (element as HTMLElement).focus({preventScroll: true});
  }
}

interface Option<T> {
  value: T;
  label: string;
  title?: string;
}

/** A choice of one of several: [{value, label, title}], as a row of buttons that arrow keys walk. */
export function choice<T>(label: string, options: Option<T>[], chosen: T, choose: (value: T) => void): HTMLElement {
  const group = h('div', {'class': 'choice', 'role': 'radiogroup', 'aria-label': label});
  options.forEach((option, i) => {
    group.append(
      h(
        'button',
        {
          'type': 'button',
          'role': 'radio',
          'aria-checked': option.value === chosen ? 'true' : 'false',
          'tabindex': option.value === chosen ? 0 : -1,
          'title': option.title,
          'onclick': () => choose(option.value),
          'onkeydown': (event) => {
            const step = ({ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1} as Record<string, number>)[event.key];
            if (!step) return;
            event.preventDefault();
            event.stopPropagation();
            const next = options[(i + step + options.length) % options.length];
            choose(next.value);
            const again = document.querySelector<HTMLElement>(`[role=radiogroup][aria-label="${label}"] [aria-checked=true]`);
            if (again) again.focus();
          },
        },
        option.label,
      ),
    );
  });
  return group;
}

/** Shows lines beside the pointer: names and values. */
export function showTip(x: number, y: number, title: string, rows: [string, string][]): void {
  const tip = byId('tip');
  replace(
    tip,
    h('strong', {}, title),
    h(
      'dl',
      {},
      rows.map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)]),
    ),
  );
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18) + 'px';
}

/** Tells of `count` places along a drawing, from left to right: by pointer, and by arrow keys. */
export function tellAlong(drawing: SVGElement, count: number, tell: (i: number) => [title: string, rows: [string, string][]]): SVGElement {
  let at = -1;
  const show = (i: number, x: number, y: number): void => {
    at = Math.min(count - 1, Math.max(0, i));
    showTip(x, y, ...tell(at));
  };
  drawing.setAttribute('tabindex', '0');
  drawing.addEventListener('pointermove', (event) => {
    const {left, width} = drawing.getBoundingClientRect();
    show(Math.floor((count * (event.clientX - left)) / width), event.clientX, event.clientY);
  });
  drawing.addEventListener('keydown', (event) => {
    const step = ({ArrowRight: 1, ArrowLeft: -1} as Record<string, number>)[event.key];
    if (!step) return;
    event.preventDefault();
    const {left, width, top} = drawing.getBoundingClientRect();
    show(at + step, left + ((at + step + 0.5) * width) / count, top);
    say(tell(at).flat(2).join(' '));
  });
  drawing.addEventListener('pointerleave', hideTip);
  drawing.addEventListener('blur', hideTip);
  return drawing;
}

export function hideTip(): void {
  byId('tip').hidden = true;
}

/** A button that copies a text, and says so. */
export function copyButton(label: string, text: string): HTMLButtonElement {
  const button = h(
    'button',
    {
      'type': 'button',
      'class': 'copy',
      'title': 'Copy',
      'aria-label': 'Copy ' + label,
      'onclick': async () => {
        await copyText(text);
        button.textContent = 'Copied';
        say('Copied');
        setTimeout(() => {
          button.textContent = 'Copy';
        }, 1200);
      },
    },
    'Copy',
  );
  return button;
}

async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page that was opened from a file has no clipboard of its own.
    const area = h('textarea', {value: text, class: 'away'});
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}
