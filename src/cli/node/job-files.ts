/** Jobs of a node on its disk. */
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

export const heldJob = z.object({
  lease: z.object({ jobId: z.string(), session: z.string(), token: z.number() }),
  group: z.object({ id: z.string() }),
  slot: z.number(),
  attempt: z.number(),
})

/** What is kept of a job that is neither handed in nor given back: what had ended when its node was killed is handed in by the next start. */
export type HeldJob = z.output<typeof heldJob>

export const handedJob = heldJob.extend({
  rolloutId: z.string(),
  fault: z.string().nullable(),
  /** When it was handed in. */
  at: z.number(),
  /** How often the coordinator's catalogue had lost something then. */
  rewound: z.number(),
})

/** What is kept of one that was handed in: it is handed in again where the coordinator lost it. */
export type HandedJob = z.output<typeof handedJob>

/** A file for each job. */
export class JobFiles<Job extends HeldJob> {
  readonly #directory: string
  readonly #schema: z.ZodType<Job>

  constructor(directory: string, schema: z.ZodType<Job>) {
    this.#directory = directory
    this.#schema = schema
  }

  async put(job: Job): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const path = this.#file(job)
    const file = await open(`${path}.tmp`, 'w', 0o600)
    try {
      await file.writeFile(JSON.stringify(this.#schema.parse(job)))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.tmp`, path)
  }

  async remove(job: Pick<HeldJob, 'lease'>): Promise<void> {
    await rm(this.#file(job), { force: true })
  }

  async all(): Promise<readonly Job[]> {
    const names = await readdir(this.#directory).catch(() => [])
    const jobs: Job[] = []
    for (const name of names.filter((one) => one.endsWith('.json'))) {
      jobs.push(this.#schema.parse(JSON.parse(await readFile(join(this.#directory, name), 'utf8'))))
    }
    return jobs
  }

  #file({ lease: { jobId, token } }: Pick<HeldJob, 'lease'>): string {
    return join(this.#directory, `${jobId}.${token}.json`)
  }
}
