// Which statistics are asked for: those of what is looked at, and no others.

import {offerToRead} from './progress';
import type {Wanted} from './source';
import {source, state, store} from './state';

// What a remote checkpoint is read for without being asked, in bytes.
const FREELY_READ = 256e6;

let wantedList: number[] = [];

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

/** The tensor that is looked at comes first, and then what the view wants. */
export function askAgain(): void {
  const wanted: Wanted[] = [];
  let bytes = 0;
  const add = (i: number): void => {
    for (const side of store.sides) {
      const k = store.on(side.number, i);
      if (k < 0) continue;
      wanted.push([side.number, k]);
      if (side.remote && !side.stats.has(k)) bytes += side.bytes[k];
    }
  };
  if (state.tensor >= 0) add(state.tensor);
  const chosen = [...wanted];
  bytes = 0;
  wantedList.forEach(add);
  if (bytes > FREELY_READ && !store.mayRead) {
    wanted.length = chosen.length;
    offerToRead(bytes, () => {
      store.mayRead = true;
      askAgain();
    });
  }
  source.wantStats(store, wanted, chosen);
}
