/** A message that names a key or a flag names one that there is. */
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { lineOf } from '../../scripts/counting/syntax.ts'
import { readSource } from '../../scripts/counting/source.ts'
import { isSource, Tree } from '../../scripts/counting/tree.ts'
import { catalogue } from '../../src/core/index.ts'

const tree = new Tree(resolve(import.meta.dirname, '../..'))
const surface = tree.text('docs/reference/surface.txt').split('\n')
const named = (kind: string): readonly string[] =>
  surface.filter((line) => line.startsWith(`${kind} `)).map((line) => line.split(' ').at(-1) ?? '')

/** Flags of the programs that fixes tell users to start: vLLM, SGLang, llama.cpp, Docker, npx, and what every program has. */
const others = new Set([
  '--enable-auto-tool-choice',
  '--enable-scale-out',
  '--enable-strict-thinking',
  '--generation-config',
  '--help',
  '--jinja',
  '--max-logprobs',
  '--no-enable-prefix-caching',
  '--package',
  '--reasoning-parser',
  '--tlsverify',
  '--tool-call-parser',
])
/** Names from the kit for gui tasks and from cua-bench. */
const otherNames = new Set(['gui.defineApp', 'gui.defineImporter', 'gui.forwardSite', 'session.apps'])
const flags = new Set([...named('flag'), ...others])
/** Every key, and every object of keys on the way to one. */
const keys = new Set(
  named('key').flatMap((key) => {
    const parts = key.split('.')
    return parts.map((_part, at) => parts.slice(0, at + 1).join('.'))
  }),
)

/** Texts of the program; environments and the contract suites run other programs in boxes. */
const texts = tree.paths
  .filter((path) => isSource(path) && !/^src\/(envs|testing)\//.test(path))
  .flatMap((path) => {
    const { text, facts } = readSource(path, tree.text(path), { withFacts: true })
    return (facts?.texts ?? [])
      .filter((one) => /\w \w/.test(one.text))
      .map((one) => ({ where: `${path}:${lineOf(text, one.at)}`, text: one.text }))
  })
const pages = tree.paths
  .filter((path) => /^(docs|bench)\/.*\.md$|^README\.md$/.test(path))
  .flatMap((path) =>
    [...tree.text(path).matchAll(/`[^`\n]+`/g)].map(({ index, 0: text }) => ({
      where: `${path}:${lineOf(tree.text(path), index)}`,
      text,
    })),
  )

it('every flag in a message is one', () => {
  expect(texts.length).toBeGreaterThan(2000)
  const unknown = texts.flatMap(({ where, text }) =>
    [...text.matchAll(/(?<![\w-])--[a-z][\w-]+/g)].flatMap(([flag]) => (flags.has(flag) ? [] : [`${where} ${flag}`])),
  )
  expect(unknown).toEqual([])
})

it('every key of the configuration in a message or between backticks on a page is one', () => {
  const rooms = new Set([...keys].map((key) => key.split('.')[0] ?? ''))
  const isFile = /\.(json|jsonl|sqlite|md|ts|toml|log|py|sh)$/
  const unknown = [...texts, ...pages.filter(({ text }) => /^`[a-z]+(\.[a-zA-Z]+)+`$/.test(text))].flatMap(
    ({ where, text }) =>
      [...text.matchAll(/(?<![\w./-])([a-z]+)(?:\.[a-z]\w*)+/g)].flatMap(([key, room = '']) =>
        rooms.has(room) && !isFile.test(key) && !keys.has(key) && !otherNames.has(key) ? [`${where} ${key}`] : [],
      ),
  )
  expect(unknown).toEqual([])
})

it('the catalogue of errors is sorted', () => {
  expect(Object.keys(catalogue)).toEqual(Object.keys(catalogue).toSorted())
})
