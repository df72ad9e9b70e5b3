// Whose code is used: what npm installs beside the package, by name, version and licence as package-lock.json tells them,
// and what is bundled into dist/, with the texts of the licences.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { leftOut } from './bundle.mjs'

/** The text of THIRD_PARTY.md for a checkout whose dependencies are installed. */
export function thirdParty(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const place = (from, name) => {
    for (let at = from; ; at = at.slice(0, at.lastIndexOf('node_modules/')).replace(/\/$/, '')) {
      const path = `${at === '' ? '' : `${at}/`}node_modules/${name}`
      if (packages[path] !== undefined) return path
      if (at === '' || !at.includes('node_modules/')) return packages[`node_modules/${name}`] ? `node_modules/${name}` : null
    }
  }
  /** Everything that the named packages bring, by its place; without `except` and what only those bring. */
  const closure = (names, except = []) => {
    const found = new Map()
    const visit = (from, name, optional) => {
      if (except.includes(name)) return
      const path = place(from, name)
      if (path === null) {
        if (optional) return
        throw new Error(`package-lock.json has no ${name} for ${from || 'the package'}. Fix: npm install`)
      }
      if (found.has(path)) return
      const facts = packages[path]
      found.set(path, facts)
      for (const inner of Object.keys(facts.dependencies ?? {})) visit(path, inner, false)
      for (const inner of Object.keys(facts.optionalDependencies ?? {})) visit(path, inner, true)
    }
    for (const name of names) visit('', name, false)
    return [...found].toSorted(([a], [b]) => (nameOf(a) < nameOf(b) ? -1 : 1))
  }
  const licence = (path, facts) => {
    if (typeof facts.license === 'string') return facts.license
    try {
      return JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).license ?? 'see the package'
    } catch {
      return 'see the package'
    }
  }
  const row = ([path, facts]) => `| ${nameOf(path)} | ${facts.version} | ${licence(path, facts)} |`
  const installed = closure(Object.keys(packages[''].dependencies)).filter(([, facts]) => facts.optional !== true)
  const inViewer = closure(Object.keys(packages['web'].devDependencies))
  const inDocker = closure(['dockerode'], leftOut)
  const texts = [...inViewer, ...inDocker].map(([path, facts]) => {
    const file = readdirSync(join(root, path)).find((name) => /^licen[cs]e/i.test(name))
    if (file === undefined) {
      const { author, license } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))
      if (!author || !license) throw new Error(`${path} brings no licence text`)
      return `### ${nameOf(path)} ${facts.version}\n\n${license}, by ${author.name ?? author}, as its manifest says; it brings no text.`
    }
    return `### ${nameOf(path)} ${facts.version}\n\n\`\`\`\n${readFileSync(join(root, path, file), 'utf8').trim()}\n\`\`\``
  })
  const head = '| package | version | licence |\n|---|---|---|'
  return [
    '# Third-party software',
    'Made by `npm run build`. Paddock itself is under Apache-2.0 (LICENSE).',
    '## Installed beside the package',
    'Each of them brings its own licence text; what is for one platform only is left out here.',
    `${head}\n${[...new Set(installed.map(row))].join('\n')}`,
    '## Bundled into the viewer (`dist/web`)',
    `${head}\n${inViewer.map(row).join('\n')}`,
    '## Bundled into the Docker client (`dist/vendor`)',
    `${head}\n${inDocker.map(row).join('\n')}`,
    ...texts,
    '',
  ].join('\n\n')
}

function nameOf(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}
