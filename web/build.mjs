// Builds the page: all scripts as one program, the style sheet, and page.html around them, as one file in built/.
//
//   node build.mjs [FILE]      writes built/page.html, or FILE
//
// The same sources and the same packages give the same bytes, on every machine.
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const read = (...path) => readFileSync(join(here, ...path), 'utf8');

const common = {absWorkingDir: here, write: false, minify: true, legalComments: 'none', charset: 'utf8', logLevel: 'warning'};

async function script() {
  const options = {
    bundle: true,
    format: 'iife',
    target: 'es2022',
    metafile: true,
    alias: {'d3-format': './src/no_format.ts', 'd3-interpolate': './src/interpolate.ts'},
    tsconfigRaw: {compilerOptions: {strict: true}},
  };
  const {outputFiles, metafile} = await build({...common, ...options, entryPoints: ['src/main.ts']});
  return {text: outputFiles[0].text, packages: packagesOf(metafile)};
}

async function style() {
  const {outputFiles} = await build({...common, entryPoints: ['page.css']});
  return outputFiles[0].text;
}

/** The packages of which something is in the program. */
function packagesOf(metafile) {
  const [{inputs}] = Object.values(metafile.outputs);
  const names = Object.entries(inputs)
    .filter(([, {bytesInOutput}]) => bytesInOutput > 0)
    .map(([path]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = [...new Set(names.filter(Boolean))].sort();
  if (packages.length === 0) throw new Error('no package of the page is in node_modules here, so their licenses are not known');
  return packages;
}

/** The licenses of these packages, each text once. */
function notices(packages) {
  const texts = new Map();
  for (const name of packages) {
    const [copyright, ...rest] = read('node_modules', name, 'LICENSE').trim().split('\n');
    const text = rest.join('\n').trim();
    texts.set(text, [...(texts.get(text) ?? []), `${name}: ${copyright}`]);
  }
  return [...texts].map(([text, heads]) => `${heads.join('\n')}\n\n${text}`).join('\n\n');
}

const {text, packages} = await script();
const code = `/*\n${notices(packages)}\n*/\n${text}`;
const parts = {style: `<style>${(await style()).trim()}</style>`, script: `<script>${code.trim()}</script>`};
let page = read('page.html');
for (const [name, part] of Object.entries(parts)) page = page.replace(`<!--${name}-->`, () => part);

// The program that serves the page looks for its marks, and for the end of the script, by their text.
const marks = page.match(/<!--.*?-->/gs).join(' ');
if (marks !== '<!--policy--> <!--title--> <!--documents-->') throw new Error('the page has other marks: ' + marks);
for (const tag of ['script', 'style']) {
  if (page.split(`</${tag}>`).length !== 2) throw new Error(`the page has not one <${tag}>`);
}
writeFileSync(process.argv[2] ?? join(here, 'built', 'page.html'), page);
