// What a program that loads the file would use, and whether that is harmless.

import {card, cutNote, tableOf} from './cards';
import type {Scan} from './documents';
import {h, type Child} from './dom';
import {plural, visible} from './text';

const SENTENCES = {
  safe: 'Everything that a loader would use is known to be harmless.',
  dangerous: 'It names something dangerous. Do not load it with a program that runs pickles.',
  unknown: 'Something in it is unknown, so nobody can say.',
};
const TITLE = 'Is it safe to load?';
const MOST_ROWS = 500;

export function scanCard(scan: Scan | {failed: string} | null): HTMLElement {
  if (!scan) return card(TITLE, h('p', {class: 'hint'}, 'It was not scanned.'));
  if ('failed' in scan) return card(TITLE, h('p', {class: 'none'}, scan.failed));
  const word = scan.safe === true ? 'safe' : scan.safe === false ? 'dangerous' : 'unknown';
  const rows = rowsOf(scan),
    known = scan.globals.filter((global) => global.verdict === 'known').length;
  return card(TITLE, [
    h('p', {class: 'verdict ' + word}, h('b', {}, word[0].toUpperCase() + word.slice(1)), ' ', SENTENCES[word]),
    rows.length ? tableOf(rows) : null,
    cutNote(MOST_ROWS, scan.globals.length - known),
    cutNote(MOST_ROWS, scan.findings.length),
    known ? h('p', {class: 'hint'}, `${plural(known, 'mention')} of known names.`) : null,
  ]);
}

/** What is not known to be harmless, and everything else that was found, with its bytes. */
function rowsOf({globals, findings}: Scan): [Child, Child][] {
  const verdictOf = (verdict: string): HTMLElement => h('b', {class: 'word ' + verdict}, verdict);
  const worth = globals.filter((global) => global.verdict !== 'known').slice(0, MOST_ROWS);
  return [
    ...worth.map(({module, name, verdict, use, why, member, offset}): [Child, Child] => [
      visible(module + '.' + name),
      [
        verdictOf(verdict),
        ' ',
        visible([use, why].filter(Boolean).join(': ')),
        h('small', {}, ` ${visible(member ?? '')} byte ${offset}`),
      ],
    ]),
    ...findings
      .slice(0, MOST_ROWS)
      .map(({where, file, verdict, what, offset}): [Child, Child] => [
        visible(where || file || ''),
        [
          verdictOf(verdict),
          ' ',
          visible(what),
          offset === null || offset === undefined ? null : h('small', {}, ` byte ${offset}`),
        ],
      ]),
  ];
}
