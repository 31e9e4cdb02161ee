// What is said of statistics that are on their way, beside the breadcrumb.

import {byId, find, h, replace} from './dom';
import {source} from './state';
import {bytesText, plural} from './text';

export function showProgress(left: number, of: number): void {
  const box = find('progress');
  if (!box || box.dataset.offer) return;
  box.hidden = left === 0;
  if (left)
    replace(
      box,
      h('progress', {'max': of, 'value': of - left, 'aria-label': 'Statistics'}),
      source.trouble || `statistics of ${plural(left, 'tensor')} to come`,
    );
}

export function withdrawOffer(): void {
  const box = find('progress');
  if (!box?.dataset.offer) return;
  delete box.dataset.offer;
  box.hidden = true;
}

/** Statistics of a remote checkpoint cost its transfer, so they are computed when somebody says so. */
export function offerToRead(bytes: number, accept: () => void): void {
  const box = byId('progress');
  box.hidden = false;
  box.dataset.offer = 'yes';
  const onclick = (): void => {
    withdrawOffer();
    accept();
  };
  replace(box, h('button', {type: 'button', onclick}, `Read ${bytesText(bytes)} for statistics`));
}
