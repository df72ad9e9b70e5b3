import { Readable } from 'node:stream'
import { isPaddockError } from '../../core/index.ts'
import type { ArchiveLimits, Artifact, ExecResult, ExecSpec } from '../contract/index.ts'
import { readArchive } from './archive-out.ts'
import type { Channel } from './channel.ts'
import { programsMount } from './hardened.ts'

/** Archives up to this size come over the box's own stream. */
const mostBytes = 4 << 20

/**
 * Unpacks a tar in a running box of root, by a program of ours there (`sandboxes/files`): for each archive that goes in or out
 * the daemon starts itself anew, which costs several times as much. False where the daemon has to do it, which does it whole whatever was
 * done. Throws what the packing throws.
 */
export async function putInside(channel: Channel, directory: string, tar: Readable): Promise<boolean> {
  return isDone(await run(channel, ['put', directory], { stdin: tar }))
}

/** The same outwards, for what is small. Null where the daemon has to do it, also to say that nothing is there. */
export async function getInside(channel: Channel, path: string, limits?: ArchiveLimits): Promise<Artifact | null> {
  const result = await run(channel, ['get', path, String(mostBytes)], { maxOutputBytes: mostBytes })
  return isDone(result) ? readArchive(Readable.from([Buffer.from(result.stdout)]), limits) : null
}

async function run(channel: Channel, args: readonly string[], more: Partial<ExecSpec>): Promise<ExecResult | null> {
  try {
    return await channel.exec({ command: [`${programsMount}/files`, ...args], cwd: '/', ...more })
  } catch (error) {
    if (isPaddockError(error) && error.code === 'BOX_COMMAND_REFUSED') return null
    throw error
  }
}

function isDone(result: ExecResult | null): result is ExecResult & { readonly kind: 'exited' } {
  return result?.kind === 'exited' && result.code === 0
}
