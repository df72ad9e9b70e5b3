// Compiles what npm ships into dist/: src/ and the scripted engine, with the files that they read beside themselves. The declarations of
// all sources lie in node_modules/.cache/paddock-types; dist/ has those of the package's imports alone.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleDocker, bundleTypes } from './bundle.mjs'
import { thirdParty } from './third-party.mjs'

const root = new URL('..', import.meta.url)
const at = (path) => fileURLToPath(new URL(path, root))

for (const path of ['dist', 'node_modules/.cache/paddock-types']) rmSync(at(path), { recursive: true, force: true })
const compiled = spawnSync(at('node_modules/.bin/tsc'), ['-p', at('tsconfig.build.json')], { stdio: 'inherit' })
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
const web = spawnSync(
  at('node_modules/.bin/vite'),
  ['build', '--config', at('web/vite.config.ts'), '--logLevel', 'warn'],
  { stdio: 'inherit' },
)
if (web.status !== 0) process.exit(web.status ?? 1)
await bundleTypes(at('node_modules/.cache/paddock-types'), at('dist/src/kits'))
await bundleDocker(at('dist/vendor/dockerode.cjs'))
for (const folder of ['tokenizers', 'templates'])
  cpSync(at(`engine/${folder}`), at(`dist/engine/${folder}`), { recursive: true })
for (const program of ['envs/verifiers/sidecar.py', 'reward/rule/math-verify/compare.py'])
  cpSync(at(`src/${program}`), at(`dist/src/${program}`))
cpSync(at('sandboxes'), at('dist/sandboxes'), { recursive: true })
chmodSync(at('dist/src/cli/main.js'), 0o755)
writeFileSync(at('dist/THIRD_PARTY.md'), thirdParty(at('.')))
