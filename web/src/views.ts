// The views, in the order of their tabs.

import {drawAdapter} from './adapter';
import {drawDifference, updateDifference} from './difference';
import {drawFile} from './file';
import {drawLayers, updateLayers} from './layers';
import {drawMap, updateMap} from './map';
import {store, type ViewName} from './state';
import {drawTable, refreshTable, updateTable} from './table';

interface View {
  label: string;
  draw(main: HTMLElement): void;
  update(): void; // something that it shows has changed
  refresh?(): void; // statistics have come
  isHere?(): boolean; // always, if it does not say
}

export const VIEWS: Record<ViewName, View> = {
  map: {label: 'Map', draw: drawMap, update: updateMap},
  table: {label: 'Table', draw: drawTable, update: updateTable, refresh: refreshTable},
  layers: {label: 'Layers', draw: drawLayers, update: updateLayers},
  difference: {label: 'Difference', draw: drawDifference, update: updateDifference, isHere: () => store.isPair},
  adapter: {label: 'Adapter', draw: drawAdapter, update: () => {}, isHere: () => store.hasAdapter},
  file: {label: 'File', draw: drawFile, update: () => {}},
};

export const viewsHere = (): ViewName[] => (Object.keys(VIEWS) as ViewName[]).filter((name) => VIEWS[name].isHere?.() ?? true);
