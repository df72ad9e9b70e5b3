import type Docker from 'dockerode'
import { PaddockError } from '../../core/index.ts'
import type { ImageOptions } from '../contract/index.ts'
import { messageOf } from './daemon.ts'
import { follow } from './progress.ts'
import { withVersion } from './references.ts'

/** A registry that has said nothing for this long is taken for unreachable. */
const registrySilenceMs = 20_000

export interface PullOptions extends ImageOptions {
  /** As `docker pull --platform` takes it; null or left out: the daemon's own. */
  readonly platform?: string | null
}

/** Pulls by reference. Throws `IMAGE_MISSING`. */
export async function pull(docker: Docker, reference: string, o: PullOptions): Promise<void> {
  const silence = new AbortController()
  const bounds = AbortSignal.any([silence.signal, ...(o.signal === undefined ? [] : [o.signal])])
  let timer = setTimeout(() => silence.abort(), registrySilenceMs)
  try {
    const platform = o.platform === undefined || o.platform === null ? {} : { platform: o.platform }
    const stream = await docker.pull(withVersion(reference), { abortSignal: bounds, ...platform })
    await follow(stream, (line) => {
      clearTimeout(timer)
      timer = setTimeout(() => silence.abort(), registrySilenceMs)
      o.onProgress?.(line)
    })
  } catch (error) {
    o.signal?.throwIfAborted()
    const why = silence.signal.aborted ? 'the registry does not answer' : messageOf(error)
    throw new PaddockError('IMAGE_MISSING', `${reference} cannot be pulled: ${why}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
