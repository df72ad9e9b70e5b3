/** Every field that an export writes is on its reference page, and every field of the page is written. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appendLate } from '../../src/rollout/index.ts'
import { recordRollouts } from '../../src/testing/exporter/index.ts'
import { builtInExporters, openStore, runExport, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { formatsTable } from './render.ts'

const page = (path: string): Promise<string> => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

/** Members whose own members are not ours to name: texts of the wire, and names that users give. */
const open = new Set([
  'messages',
  'prompt',
  'tools',
  'labels',
  'components',
  'reward_components',
  'options',
  'selection',
  'forks',
])
/** Objects of the manifest whose members are names of things: reasons, kinds, sizes. */
const counts = new Set([
  'masked',
  'not_exported',
  'left_out',
  'sizes',
  'statuses',
  'harnesses',
  'ends',
  'logprob_kinds',
  'causes',
])
/** Objects of the manifest with an object for each name of a thing. */
const named = new Set(['tasks', 'versions'])

let directory: string
let store: Store
let made = 0
beforeAll(async () => {
  directory = tempDir()
  store = await openStore(join(directory, 'data'))
  const [rolloutId = ''] = await recordRollouts(store, [
    { task: 'a', group: 'a', image: true },
    { task: 'b', group: 'b' },
  ])
  const [session] = await store.recorder.sessions({ rolloutId })
  const log = await store.recorder.session(session?.id ?? '')
  const at = { id: rolloutId, at: 1, rolloutId, sessionId: session?.id ?? null }
  const callId = log.calls[0]?.intent.id ?? ''
  const alternatives = Buffer.from('alternatives')
  const sha256 = await store.blobs.put(alternatives)
  await store.recorder.appendEvent({
    ...at,
    kind: 'side_channel',
    callId,
    choice: 0,
    what: 'top_logprobs',
    encoding: 'json+zstd',
    sha256,
    sizeBytes: alternatives.length,
  })
  await appendLate(store, rolloutId, { source: 'critic', steps: [{ callId, value: 0.5 }] })
  await store.recorder.flush()
})
afterAll(async () => {
  await store.close()
})

async function exported(format: string): Promise<{ rows: readonly object[]; manifest: object }> {
  const out = join(directory, `${format}-${(made += 1)}`)
  const manifest = await runExport({
    reader: store,
    exporter: format,
    query: { includeSpans: true },
    out,
    sideChannels: store.blobs,
    paddockVersion: '0.0.0',
  })
  const file = join(out, manifest.files[0]?.name ?? '')
  if (file.endsWith('.parquet')) {
    return { manifest, rows: await parquetReadObjects({ file: await asyncBufferFromFile(file) }) }
  }
  const text = await readFile(file, 'utf8')
  return {
    manifest,
    rows: text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as object),
  }
}

/** Rows of the first tables of a section: the names of the first cell, and the whole line. */
function documented(text: string, heading: string): ReadonlyMap<string, string> {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''
  const found = new Map<string, string>()
  for (const line of section.split('\n')) {
    const [, cell = ''] = line.split('|')
    if (line.startsWith('| `')) for (const [, name = ''] of cell.matchAll(/`([^`]+)`/g)) found.set(name, line)
  }
  return found
}

/** Names of members inside a value, at any depth; JSON columns are read too. */
function memberNames(value: unknown): readonly string[] {
  if (typeof value === 'string' && value.startsWith('{"')) return memberNames(JSON.parse(value))
  if (Array.isArray(value)) return value.flatMap(memberNames)
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    open.has(name) || counts.has(name)
      ? [name]
      : [name, ...memberNames(named.has(name) ? Object.values<unknown>(inner ?? {}) : inner)],
  )
}

function undocumented(values: readonly object[], table: ReadonlyMap<string, string>): readonly string[] {
  const missing = new Set<string>()
  for (const value of values) {
    for (const [name, inner] of Object.entries(value)) {
      const line = table.get(name)
      if (line === undefined) missing.add(name)
      else if (!open.has(name) && !counts.has(name)) {
        for (const member of memberNames(inner)) {
          if (!new RegExp(`\\b${member}\\b`).test(line)) missing.add(`${name}.${member}`)
        }
      }
    }
  }
  return [...missing]
}

describe('export-formats.md', () => {
  // Pairs need groups of their own: `test/export/dpo.test.ts` holds them.
  it.each(builtInExporters.names.filter((name) => name !== 'dpo'))(
    '%s writes the fields of its section, and no others',
    async (format) => {
      const text = await page('reference/export-formats.md')
      const table = documented(text, `\`${format}\``)
      const { rows } = await exported(format)
      expect(rows.length).toBeGreaterThan(0)
      // The section of `openai` is about another company's shape and its own options.
      if (format === 'openai') return expect(rows.flatMap(Object.keys)).toEqual(rows.map(() => 'messages'))
      expect(undocumented(rows, table)).toEqual([])
      const written = new Set(rows.flatMap((row) => Object.keys(row)))
      const unwritten = [...table].filter(([name, line]) => !written.has(name) && !line.includes('absent w'))
      expect(unwritten.map(([name]) => name)).toEqual([])
    },
  )

  it('lists every format with its files, and every need with the formats that have it', async () => {
    const text = await page('reference/export-formats.md')
    for (const { name, files, trainer } of builtInExporters.all()) {
      expect(text).toContain(`| [\`${name}\`](#${name}) | ${files.map((file) => `\`${file}\``).join(', ')} |`)
      for (const [need, isNeeded] of Object.entries(trainer)) {
        const line = text.split('\n').find((one) => one.startsWith(`| \`${need}\` |`)) ?? ''
        expect([need, name, line.split('|')[3]?.includes(`\`${name}\``)]).toEqual([need, name, isNeeded])
      }
    }
  })

  it('the guide for trainers lists every format', async () => {
    expect(await page('guides/export-to-a-trainer.md')).toContain(`\n\n${formatsTable()}\n\n`)
  })
})

it('export-manifest.md has every field of a manifest', async () => {
  const text = await page('reference/export-manifest.md')
  const table = documented(`## manifest\n${text.split('\n## ')[0]}`, 'manifest')
  for (const format of builtInExporters.names) {
    const { schema: _, ...manifest } = (await exported(format)).manifest as Record<string, unknown>
    expect(undocumented([manifest], table)).toEqual([])
  }
})
