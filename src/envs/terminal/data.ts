import { z } from 'zod'

const image = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('dockerfile'), dockerfile: z.string(), directory: z.enum(['environment', 'tests']) }),
  z.object({ kind: z.literal('reference'), reference: z.string() }),
])

const network = z.union([z.literal('none'), z.literal('open'), z.object({ allow: z.array(z.string()) })])

const boxData = z.object({
  image,
  workdir: z.string(),
  env: z.record(z.string(), z.string()),
  cpus: z.number(),
  memoryMb: z.number(),
  storageMb: z.number(),
  network,
})

/**
 * `Task.data` of a terminal task: what its folder says, with every default filled in. Times in milliseconds, sizes in
 * MB. Files stay in the folder (`Task.source`) and stand here by digest, so that another file is another task.
 */
export const terminalDataSchema = z.object({
  agent: boxData.extend({
    profile: z.enum(['user', 'root']),
    user: z.string().nullable(),
    timeoutMs: z.number().nullable(),
    healthcheck: z
      .object({
        command: z.string(),
        intervalMs: z.number(),
        timeoutMs: z.number(),
        startPeriodMs: z.number(),
        startIntervalMs: z.number(),
        retries: z.number(),
      })
      .nullable(),
  }),
  verifier: boxData.extend({
    user: z.string().nullable(),
    timeoutMs: z.number(),
    /** False when the verifier's own image holds `/tests`. */
    uploadTests: z.boolean(),
  }),
  artifacts: z.array(z.object({ source: z.string(), exclude: z.array(z.string()) })),
  collect: z.array(
    z.object({
      command: z.string(),
      timeoutMs: z.number(),
      user: z.string().nullable(),
      env: z.record(z.string(), z.string()),
    }),
  ),
  solutionEnv: z.record(z.string(), z.string()),
  digests: z.object({ environment: z.string(), tests: z.string() }),
  metadata: z.record(z.string(), z.unknown()),
})

/** Parsed {@link terminalDataSchema}. */
export type TerminalData = z.infer<typeof terminalDataSchema>
