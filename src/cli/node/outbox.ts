/** Jobs that a node has, on its disk: what had ended when it was killed is handed in by its next start. */
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { NodeJob } from '../../rollout/index.ts'

const entry = z.object({
  lease: z.object({ jobId: z.string(), session: z.string(), token: z.number() }),
  group: z.object({ id: z.string() }),
  slot: z.number(),
  attempt: z.number(),
})

/** What is kept of a job. */
export type HeldJob = z.output<typeof entry>

/** A file for each job of this node that is neither handed in nor given back. */
export class Outbox {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async put({ lease, group, slot, attempt }: NodeJob): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const path = this.#file(lease)
    const file = await open(`${path}.tmp`, 'w', 0o600)
    try {
      await file.writeFile(JSON.stringify(entry.parse({ lease, group, slot, attempt })))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.tmp`, path)
  }

  async remove({ lease }: Pick<HeldJob, 'lease'>): Promise<void> {
    await rm(this.#file(lease), { force: true })
  }

  async all(): Promise<readonly HeldJob[]> {
    const names = await readdir(this.#directory).catch(() => [])
    const whole = names.filter((name) => name.endsWith('.json'))
    return Promise.all(
      whole.map(async (name) => entry.parse(JSON.parse(await readFile(join(this.#directory, name), 'utf8')))),
    )
  }

  #file({ jobId, token }: HeldJob['lease']): string {
    return join(this.#directory, `${jobId}.${token}.json`)
  }
}
