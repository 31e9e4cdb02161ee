// An adapter: how strong its change of each module is, over depth.

import {card, factList} from './cards';
import type {AdapterDocument, Module, Scale} from './documents';
import {h, hideTip, replace, showTip, type Child} from './dom';
import {extent, medianAndSpread} from './metrics';
import {source} from './state';
import {bytesText, collator, countText, entryOf, numberText, patternOf, shareText, visible} from './text';

interface Modules {
  modules: Module[];
  failed?: string;
}

export function drawAdapter(main: HTMLElement): void {
  const box = h('div', {class: 'cards'}, h('p', {class: 'wait'}, 'Reading…'));
  replace(main, h('div', {class: 'file'}, box));
  const modules = source.document<Modules>('modules').catch((error: Error) => ({modules: [], failed: error.message}));
  Promise.all([source.document<AdapterDocument>('adapter'), modules]).then(
    ([adapter, found]) => replace(box, adapter ? cardsOf(adapter, found ?? {modules: []}) : null),
    (error: Error) => replace(box, h('p', {class: 'none'}, error.message)),
  );
}

function cardsOf(adapter: AdapterDocument, {modules, failed}: Modules): Child[] {
  const problems = adapter.problems ?? [];
  return [
    card('What it is', factsOf(adapter)),
    card('Scaling', adapter.scales?.length ? scalesOf(adapter.scales) : h('p', {class: 'hint'}, 'It has none.')),
    problems.length
      ? card(
          'Problems',
          h(
            'ul',
            {},
            problems.map(({text, hint}) => h('li', {}, visible(text), hint ? h('small', {}, ' ' + visible(hint)) : null)),
          ),
        )
      : null,
    failed ? card('Modules', h('p', {class: 'none'}, failed)) : null,
    modules.length ? card('How much each module changes', moduleChart(modules), 'wide') : null,
  ];
}

function factsOf(adapter: AdapterDocument): HTMLElement {
  const type = adapter.type || (adapter.possible_types ?? []).join(' or ');
  return factList([
    ['type', type + (adapter.variants?.length ? ` (${adapter.variants.join(', ')})` : '')],
    ['names of', adapter.dialect],
    ['base', adapter.base_model && visible(adapter.base_model)],
    ['tensors', countText(adapter.tensors)],
    ['parameters', countText(adapter.parameters)],
    ['bytes', bytesText(adapter.bytes)],
    ['merged', adapter.merge && (adapter.merge.formula || adapter.merge.why_not)],
  ]);
}

function scalesOf(scales: Scale[]): HTMLElement {
  const keys = ['rank', 'alpha', 'scaling', 'modules'] as const;
  const head = keys.map((title) => h('th', {scope: 'col'}, title)),
    rows = scales.map((scale) =>
      h(
        'tr',
        {},
        keys.map((key) => h('td', {}, numberText(scale[key], 6))),
      ),
    );
  return h('table', {class: 'definitions'}, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows));
}

/** The modules by role, in the order of depth: ‖s·B·A‖ as bars, with the share of ‖W‖ and the rank that is really used. */
function moduleChart(modules: Module[]): Child[] {
  const roles = new Map<string, Module[]>();
  for (const module of modules) entryOf(roles, patternOf(module.name), () => [] as Module[]).push(module);
  const key = modules.some((module) => module.share !== null) ? 'share' : 'norm';
  const most = extent(modules.map((module) => module[key] ?? 0))[1] || 1e-300;
  const hint =
    key === 'share' ? 'Bars are ‖s·B·A‖ / ‖W‖.' : 'Bars are ‖s·B·A‖. With the base model (--base), they are its share of ‖W‖.';
  return [
    h('p', {class: 'hint'}, hint),
    [...roles].sort((a, b) => collator.compare(a[0], b[0])).map(([role, list]) => roleOf(role, list, key, most)),
  ];
}

function roleOf(role: string, modules: Module[], key: 'share' | 'norm', most: number): HTMLElement {
  const middle = (values: (number | null)[]): string => numberText(medianAndSpread(values.map((v) => v ?? NaN))[0], 3);
  const sentence =
    `median ${middle(modules.map((module) => module[key]))}, ` +
    `effective rank ${middle(modules.map((module) => module.effective_rank))} of ${numberText(modules[0].rank)}`;
  const bars = modules
    .sort((a, b) => collator.compare(a.name, b.name))
    .map((module) =>
      h('span', {
        'role': 'img',
        'tabindex': 0,
        'class': 'bar-up',
        'style': {height: Math.max(2, (52 * (module[key] ?? 0)) / most) + 'px'},
        'aria-label': `${visible(module.name)}: norm ${numberText(module.norm)}`,
        'onpointerenter': (event) => moduleTip(event.clientX, event.clientY, module),
        'onpointerleave': hideTip,
        'onfocus': (event) => {
          const at = (event.target as Element).getBoundingClientRect();
          moduleTip(at.left, at.top, module);
        },
        'onblur': hideTip,
      }),
    );
  return h(
    'section',
    {class: 'role adapter-role'},
    h('div', {class: 'role-name'}, h('h3', {title: visible(role)}, h('bdi', {dir: 'ltr'}, visible(role))), h('p', {}, sentence)),
    h('div', {'class': 'bars', 'role': 'group', 'aria-label': visible(role)}, bars),
  );
}

function moduleTip(x: number, y: number, module: Module): void {
  showTip(x, y, visible(module.name), [
    ['rank', numberText(module.rank)],
    ['alpha', numberText(module.alpha)],
    ['scaling', numberText(module.scaling)],
    ['‖s·B·A‖', numberText(module.norm)],
    ['of ‖W‖', module.share === null ? '–' : shareText(module.share)],
    ['effective rank', numberText(module.effective_rank, 3)],
  ]);
}
