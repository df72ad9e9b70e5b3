import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { newId } from '../../core/index.ts'
import type { Judged } from './reply.ts'

/**
 * Readings by the digest of everything that they depend on: judge, prompt, content, vote. The judge checks what `get` gives as it
 * checks a reply; what does not fit is asked again.
 */
export interface JudgeCache {
  get(key: string): Promise<Judged | null>
  put(key: string, judged: Judged): Promise<void>
}

/** Lives as long as the process. */
export function memoryCache(): JudgeCache {
  const known = new Map<string, Judged>()
  return {
    get: async (key) => known.get(key) ?? null,
    put: async (key, judged) => void known.set(key, judged),
  }
}

const judgedSchema = z.strictObject({ choice: z.string(), explanation: z.string() })

/** One file per reading; shared by processes. A file that cannot be read counts as none. */
export function directoryCache(directory: string): JudgeCache {
  const place = (key: string): string => join(directory, key.slice(0, 2), `${key}.json`)
  return {
    get: async (key) => {
      try {
        return judgedSchema.parse(JSON.parse(await readFile(place(key), 'utf8')))
      } catch {
        return null
      }
    },
    put: async (key, judged) => {
      const file = place(key)
      await mkdir(join(directory, key.slice(0, 2)), { recursive: true })
      const fresh = `${file}.${newId()}`
      await writeFile(fresh, JSON.stringify(judged))
      await rename(fresh, file)
    },
  }
}
