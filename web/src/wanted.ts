// Which statistics are asked for: those of what is looked at, and no others.

import {offerToRead, withdrawOffer} from './progress';
import type {Wanted} from './source';
import {draw, source, state, store} from './state';
import type {Side} from './store';

// What a remote checkpoint is read for without being asked, in bytes.
const FREELY_READ = 256e6;

let wantedList: number[] = [];
const allowed = new Set<string>(); // sides and numbers that may be read, however large

/** Asks for statistics of tensors of the store, on every side that has them: all that this view looks at. */
export function want(list: number[]): void {
  wantedList = list;
  askAgain();
}

/** Another view begins, which says what it wants if it wants anything. */
export function forgetWanted(): void {
  wantedList = [];
}

export const wantsNothing = (): boolean => wantedList.length === 0;

/** Whether a tensor's values are so far away, and so many, that somebody has to say that they are wanted. */
export const isHeldBack = (side: Side, k: number): boolean =>
  side.remote && side.bytes[k] > FREELY_READ && !allowed.has(`${side.number} ${k}`);

export function allow(side: Side, k: number): void {
  allowed.add(`${side.number} ${k}`);
}

/** The tensor that is looked at comes first, and then what the view wants; what is known is not asked for. */
export function askAgain(): void {
  if (!source.canRead) return;
  const held: Wanted[] = [];
  let of = 0;
  const partsOf = (list: number[], most: number): Wanted[] => {
    const far: Wanted[] = [],
      near: Wanted[] = [];
    let bytes = 0;
    for (const side of store.sides) {
      for (const i of list) {
        const k = store.on(side.number, i);
        if (k < 0) continue;
        ++of;
        if (side.stats[k] && list === wantedList) continue;
        const isFar = side.remote && !side.stats[k] && !allowed.has(`${side.number} ${k}`);
        if (isFar) bytes += side.bytes[k];
        (isFar ? far : near).push([side.number, k]);
      }
    }
    if (bytes <= most) return [...near, ...far];
    for (const one of far) held.push(one);
    return near;
  };
  const chosen = partsOf(state.tensor >= 0 ? [state.tensor] : [], FREELY_READ),
    wanted = [...chosen, ...partsOf(wantedList, FREELY_READ)];
  const bytes = [...new Map(held.map(([side, k]) => [`${side} ${k}`, store.sides[side].bytes[k]])).values()];
  if (held.length === 0) withdrawOffer();
  else
    offerToRead(
      bytes.reduce((sum, size) => sum + size, 0),
      () => {
        for (const [side, k] of held) allow(store.sides[side], k);
        draw({});
        askAgain();
      },
    );
  source.wantStats(store, wanted, chosen, of);
}
