// Elements. Everything that a file says becomes text here, never markup: there is no other way of making elements in
// these scripts, and the page's policy forbids markup from strings altogether.

/** h('p', {class: 'note', onclick: f}, 'text', child, …): null and false children are left out. */
function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(element.style, value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

const byId = (id) => document.getElementById(id);

function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** A canvas of so many CSS pixels, sharp on every screen; the context draws in CSS pixels. */
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Says something to people who cannot see what changed. */
function say(text) {
  byId('said').textContent = text;
}

const labelOf = (element) => element.id || element.getAttribute('aria-label') || element.textContent;

/** Does work that may make elements anew, and gives the focus to what has taken the place of the element that had it. */
function keepFocus(work) {
  const before = document.activeElement;
  if (!before || before === document.body) return work();
  const group = before.parentElement && before.parentElement.closest('[aria-label], [id]');
  const label = labelOf(before),
    groupLabel = group && labelOf(group);
  work();
  if (before.isConnected) return;
  for (const element of document.getElementsByTagName(before.tagName)) {
    if (labelOf(element) !== label) continue;
    const around = element.parentElement.closest('[aria-label], [id]');
    if ((around && labelOf(around)) === groupLabel) return element.focus({preventScroll: true});
  }
}

/** A choice of one of several: [{value, label, title}], as a row of buttons that arrow keys walk. */
function choice(label, options, chosen, choose) {
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
            const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
            if (!step) return;
            event.preventDefault();
            event.stopPropagation();
            const next = options[(i + step + options.length) % options.length];
            choose(next.value);
            const again = document.querySelector(`[role=radiogroup][aria-label="${label}"] [aria-checked=true]`);
            if (again) again.focus();
          },
        },
        option.label,
      ),
    );
  });
  return group;
}

let tipTimer = 0;

/** Shows lines beside the pointer: [name, value] pairs, or texts. */
function showTip(x, y, title, rows) {
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
  clearTimeout(tipTimer);
}

function hideTip() {
  byId('tip').hidden = true;
}

/** A button that copies a text, and says so. */
function copyButton(label, text) {
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

async function copyText(text) {
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
