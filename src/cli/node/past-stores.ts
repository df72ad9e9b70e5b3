/** How long a node keeps what it handed in. Its store is removed as a whole. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, type Digest, sha256, systemClock } from '../../core/index.ts'
import { setAside } from '../../trajectory/index.ts'
import type { HandedJob, HeldJob, JobFiles } from './job-files.ts'

const state = z.object({
  /** When the store was begun, in milliseconds of the epoch. */
  since: z.number(),
  /** Name of the folder that it is being moved to; null: it stays. */
  moving: z.string().nullable(),
})

export interface PastStoresParts {
  /** Data directory of the node. */
  readonly directory: string
  /** So long what was handed in is kept, and a store recorded into. Milliseconds. */
  readonly keepMs: number
  readonly held: Pick<JobFiles<HeldJob>, 'all'>
  readonly handed: Pick<JobFiles<HandedJob>, 'all' | 'put' | 'remove'>
  readonly clock?: Clock
}

/** What a node has handed in, and the store in which it did so. */
export class PastStores {
  readonly #parts: PastStoresParts
  readonly #clock: Clock
  #since = 0

  constructor(parts: PastStoresParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  /** Whether the store has recorded for so long that it is to go. */
  get isDue(): boolean {
    return this.#clock.now() - this.#since > this.#parts.keepMs
  }

  /** Before the store is opened: removes it where it is due and holds nothing that is not handed in, and what was kept for long enough. */
  async tidy(): Promise<void> {
    const { directory, held, handed, keepMs } = this.#parts
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const now = this.#clock.now()
    let { since, moving } = (await this.#read()) ?? { since: now, moving: null }
    this.#since = since
    if (moving === null && this.isDue && (await held.all()).length === 0) {
      moving = String(now)
      await this.#write({ since, moving })
    }
    if (moving !== null) {
      await setAside(directory, join(this.#folder, moving))
      since = now
    }
    await this.#write({ since, moving: null })
    this.#since = since
    await rm(this.#folder, { recursive: true, force: true })
    for (const job of await handed.all()) if (job.at + keepMs < now) await this.forget(job)
  }

  /** Keeps what was handed in, byte by byte: made anew it may say more by then. */
  async keep(job: HandedJob, bytes: Uint8Array): Promise<void> {
    await mkdir(this.#packs, { recursive: true, mode: 0o700 })
    await writeFile(this.#packOf(job), bytes, { mode: 0o600 })
    await this.#parts.handed.put(job)
  }

  /** What was handed in. */
  async packed(job: HandedJob): Promise<{ readonly bytes: Buffer; readonly digest: Digest }> {
    const bytes = await readFile(this.#packOf(job))
    return { bytes, digest: sha256(bytes) }
  }

  async forget(job: HandedJob): Promise<void> {
    await this.#parts.handed.remove(job)
    await rm(this.#packOf(job), { force: true })
  }

  get #packs(): string {
    return join(this.#parts.directory, 'node-packs')
  }

  #packOf({ lease: { jobId, token } }: HandedJob): string {
    return join(this.#packs, `${jobId}.${token}`)
  }

  get #folder(): string {
    return join(this.#parts.directory, 'node-past')
  }

  get #file(): string {
    return join(this.#parts.directory, 'node-store.json')
  }

  async #read(): Promise<z.output<typeof state> | null> {
    const text = await readFile(this.#file, 'utf8').catch(() => null)
    return text === null ? null : state.parse(JSON.parse(text))
  }

  async #write(written: z.output<typeof state>): Promise<void> {
    await writeFile(`${this.#file}.tmp`, JSON.stringify(written), { mode: 0o600 })
    await rename(`${this.#file}.tmp`, this.#file)
  }
}
