// Run after `npm install`: `node scripts/complete-lock.mjs`.
// A registry that lacks the binaries of other platforms leaves their optional packages out of package-lock.json, and
// `npm ci` then refuses the file. This adds them by name, with the platform that the name tells, so that they are known
// and never installed where they do not belong.
import { readFileSync, writeFileSync } from 'node:fs'

const file = process.argv[2] ?? 'package-lock.json'
const lock = JSON.parse(readFileSync(file, 'utf8'))
const systems = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32', 'aix']
const processors = {
  'arm-eabi': 'arm',
  'arm-gnueabihf': 'arm',
  'arm-musleabihf': 'arm',
  arm64: 'arm64',
  arm: 'arm',
  ia32: 'ia32',
  loong64: 'loong64',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  x64: 'x64',
  universal: undefined,
}
let added = 0
for (const [place, facts] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(facts.optionalDependencies ?? {})) {
    if (lock.packages[`${place}/node_modules/${name}`] || lock.packages[`node_modules/${name}`]) continue
    const os = systems.find((system) => new RegExp(`(^|[/-])${system}(-|$)`).test(name))
    const cpu = Object.entries(processors).find(([word]) => new RegExp(`-${word}(-|$)`).test(name))?.[1]
    if (os === undefined || cpu === undefined) continue
    const libc = /musl/.test(name) ? ['musl'] : os === 'linux' ? ['glibc'] : undefined
    lock.packages[`node_modules/${name}`] = {
      version,
      cpu: [cpu],
      ...(facts.dev ? { dev: true } : {}),
      ...(libc ? { libc } : {}),
      optional: true,
      os: [os],
    }
    added += 1
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${file}: ${added} packages of other platforms added`)
