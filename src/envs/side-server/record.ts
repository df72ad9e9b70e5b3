import type { z } from 'zod'
import type { DraftFacts } from '../../reward/index.ts'
import { packArtifact } from '../artifacts.ts'
import type { ArtifactItem, Artifacts } from '../contract.ts'

/** What the environment said of an attempt, as an artifact. No file of the box: the agent can neither read nor write it. */
export function recordItem(name: string, record: unknown): ArtifactItem {
  const data = Buffer.from(JSON.stringify(record))
  const entries = [{ type: 'file' as const, path: `${name}.json`, mode: 0o444, data }]
  return {
    path: pathOf(name),
    content: { found: true, entries, refused: [], cutShort: false, totalBytes: data.length },
  }
}

/** The record among artifacts; null where none was taken. */
export function recordAmong<T>(artifacts: Artifacts, name: string, schema: z.ZodType<T>): T | null {
  const entry = artifacts.items.find(({ path }) => path === pathOf(name))?.content.entries[0]
  return entry?.type === 'file' ? schema.parse(JSON.parse(Buffer.from(entry.data).toString('utf8'))) : null
}

/** Facts of a verdict that the environment's own code gave. */
export async function factsOf(artifacts: Artifacts, verifier: DraftFacts['verifier']): Promise<DraftFacts> {
  const packed = await Promise.all(artifacts.items.filter((item) => item.content.found).map(packArtifact))
  const kept = packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes }))
  return { verifier, trust: 'host', artifacts: kept }
}

function pathOf(name: string): string {
  return `/paddock/${name}.json`
}
