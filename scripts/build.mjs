// Compiles what npm ships into dist/: src/ and the scripted engine, with the files that they read beside themselves.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { thirdParty } from './third-party.mjs'

const root = new URL('..', import.meta.url)
const at = (path) => fileURLToPath(new URL(path, root))

rmSync(at('dist'), { recursive: true, force: true })
const compiled = spawnSync(at('node_modules/.bin/tsc'), ['-p', at('tsconfig.build.json')], { stdio: 'inherit' })
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
const web = spawnSync(
  at('node_modules/.bin/vite'),
  ['build', '--config', at('web/vite.config.ts'), '--logLevel', 'warn'],
  { stdio: 'inherit' },
)
if (web.status !== 0) process.exit(web.status ?? 1)
for (const folder of ['tokenizers', 'templates'])
  cpSync(at(`engine/${folder}`), at(`dist/engine/${folder}`), { recursive: true })
cpSync(at('src/envs/verifiers/sidecar.py'), at('dist/src/envs/verifiers/sidecar.py'))
cpSync(at('sandboxes'), at('dist/sandboxes'), { recursive: true })
chmodSync(at('dist/src/cli/main.js'), 0o755)
writeFileSync(at('dist/THIRD_PARTY.md'), thirdParty(at('.')))
