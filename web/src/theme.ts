// Light and dark: as the user chose it, else as the system has it.

let dark = false;
const colors = new Map<string, string>(); // of the style sheet: asking it takes a while

/** Asked for every cell of a picture. */
export const isDark = (): boolean => dark;

function show(theme: string): void {
  document.documentElement.dataset.theme = theme;
  colors.clear();
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
export function themeColor(name: string): string {
  let color = colors.get(name);
  if (color === undefined) {
    color = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
    colors.set(name, color);
  }
  return color;
}
