// Light and dark: as the user chose it, else as the system has it.

let dark = false;

/** Asked for every cell of a picture. */
export const isDark = (): boolean => dark;

function show(theme: string): void {
  document.documentElement.dataset.theme = theme;
  dark = theme === 'dark';
}

export function applyTheme(): void {
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  let chosen = null;
  try {
    chosen = localStorage.getItem('ballast-theme');
  } catch {}
  show(chosen === 'light' || chosen === 'dark' ? chosen : system);
}

/** A page of a file may have no storage: then the choice holds until it is closed. */
export function chooseTheme(theme: 'light' | 'dark'): void {
  try {
    localStorage.setItem('ballast-theme', theme);
  } catch {}
  show(theme);
}

/** A colour of the style sheet. */
export const themeColor = (name: string): string =>
  getComputedStyle(document.documentElement)
    .getPropertyValue('--' + name)
    .trim();
