/** A project that uses all of them. With the packed package installed (docs/guides/plugins.md): `npx paddock run tasks --env sums --harness plain-loop`. */
import { defineConfig } from 'paddock-rl'

export default defineConfig({
  environments: ['./environment.ts'],
  gui: { apps: ['./gui-app.ts'], importers: ['./gui-importer.ts'] },
  harnesses: ['./harness.ts'],
  exporters: ['./exporter.ts'],
  selectors: ['./selector.ts', './curriculum.ts'],
})
