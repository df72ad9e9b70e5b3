/** The public surface: what a user can type, send, read or import. Loads the program; every other count only reads text. */
import type { Command } from 'commander'
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { routeTable } from '../../src/access/index.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { configSchema } from '../../src/config/schema.ts'
import { catalogue } from '../../src/core/index.ts'
import { readSource } from './source.ts'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** One line each, sorted: its kind, and its name. */
export async function surfaceText(): Promise<string> {
  const lines = [
    ...(await commandLines()),
    ...keysBelow(z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }), '').map((key) => `key ${key}`),
    ...routeLines(),
    ...Object.keys(catalogue).map((code) => `error ${code}`),
    ...fieldLines('docs/reference/export-formats.md', /^`([\w-]+)`$/),
    ...fieldLines('docs/reference/export-manifest.md', /^# (Export manifest)/),
    ...nameLines(),
  ]
  return `${[...new Set(lines)].toSorted().join('\n')}\n`
}

async function commandLines(): Promise<readonly string[]> {
  const nowhere = { out: () => undefined, err: () => undefined, status: () => undefined, env: {}, cwd: '/' }
  const io = { ...nowhere, colour: false, columns: null, signal: new AbortController().signal }
  const below = (command: Command, name: string): readonly string[] => [
    ...(name === '' ? [] : [`command ${name}`]),
    ...command.options.map((option) => `flag ${name === '' ? '' : `${name} `}${option.long ?? option.short}`),
    ...command.commands
      .filter((inner) => inner.name() !== 'help')
      .flatMap((inner) => below(inner, name === '' ? inner.name() : `${name} ${inner.name()}`)),
  ]
  return below(await buildProgram({ io, run: async () => undefined, look: async () => undefined }), '')
}

const object = z.looseObject({
  properties: z.record(z.string(), z.unknown()).optional(),
  additionalProperties: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
})

/** Keys at the ends, those of a value that may be null too; `*` is a name that a user gives. */
function keysBelow(schema: unknown, path: string): readonly string[] {
  const { properties, additionalProperties, anyOf = [] } = object.safeParse(schema).data ?? {}
  const named = Object.entries({
    ...properties,
    ...(typeof additionalProperties === 'object' ? { '*': additionalProperties } : {}),
  }).flatMap(([name, inner]) => keysBelow(inner, path === '' ? name : `${path}.${name}`))
  const held = [...named, ...anyOf.flatMap((one) => keysBelow(one, path).filter((key) => key !== path))]
  return held.length === 0 ? [path] : held
}

/** The control listener's are those of its table; the viewer's and those of other listeners are read where they are written. */
function routeLines(): readonly string[] {
  const inference = read('docs/reference/routes.md').split('\n## Control')[0] ?? ''
  const listed = [...inference.matchAll(/`((?:GET|POST|DELETE) \/\S+?)`/g)].map(([, route = '']) => route)
  const viewer = ['view/routes', 'view/annotate', 'view/serve-view'].flatMap((file) =>
    [...read(`src/server/${file}.ts`).matchAll(/(?:\b|\.)(get|post|delete)\('(\/[^']*)'/g)].map(
      ([, method = '', path = '']) => `${method.toUpperCase()} ${file === 'view/serve-view' ? '' : '/view/api'}${path}`,
    ),
  )
  return [...routeTable.map(({ route }) => route), ...listed, ...viewer].map((route) => `route ${route}`)
}

/** Fields by the heading that they are listed below: `field verl.reward`. Members of a field are told in its text and not listed. */
function fieldLines(page: string, heading: RegExp): readonly string[] {
  return read(page)
    .split(/^## /m)
    .flatMap((section) => {
      const [head = '', ...lines] = section.split('\n')
      const [, name] = heading.exec(head) ?? []
      if (name === undefined) return []
      return lines.flatMap((line) => {
        const [, cell = ''] = line.split('|')
        if (!line.startsWith('| `')) return []
        return [...cell.matchAll(/`([^`]+)`/g)].map(([, field]) => `field ${name.split(' ').at(-1)}.${field}`)
      })
    })
}

/** Names that each door of the package exports. */
function nameLines(): readonly string[] {
  return readdirSync(new URL('../../src/kits', import.meta.url)).flatMap((file) => {
    const source = readSource(file, read(`src/kits/${file}`), { withFacts: false })
    return source.exports.map((name) => `name ${file.replace(/\.ts$/, '')}.${name}`)
  })
}
