import type Docker from 'dockerode'
import { z } from 'zod'
import { ask, messageOf, statusOf } from './daemon.ts'
import { removeByForce } from './attached.ts'
import { ownedDirectory, runtimeDirectory } from './host-dirs.ts'
import { containerLabels } from './labels.ts'

/** By address, for clients of one daemon are many. */
const known = new Map<string, Promise<boolean | null>>()

/** What dockerode's connection knows of its daemon (docker-modem 5, `lib/modem.js`); the typings leave it out. */
const modemShape = z.looseObject({
  socketPath: z.unknown().optional(),
  host: z.string().nullish(),
  port: z.unknown().optional(),
})

function addressOf(docker: Docker): string {
  const { socketPath, host, port } = modemShape.parse(docker.modem)
  return host ? `${host}:${String(port)}` : typeof socketPath === 'string' ? socketPath : ''
}

/**
 * Whether the daemon sees the files of this process, so that a socket of ours can be mounted into a box: asked with a
 * directory of a random name. One behind TCP or a tunnel may be on this machine or not; its address does not tell.
 * `images` are some that it has, of which one is still there; nothing of it is run. Null: none is, as others may remove them.
 */
export function seesOurFiles(docker: Docker, images: readonly string[]): Promise<boolean | null> {
  const address = addressOf(docker)
  const before = known.get(address)
  if (before !== undefined) return before
  const asked = askWhetherSeen(docker, images)
  known.set(address, asked)
  asked.then(
    (seen) => seen === null && known.delete(address),
    () => known.delete(address),
  )
  return asked
}

async function askWhetherSeen(docker: Docker, images: readonly string[]): Promise<boolean | null> {
  for (const image of images) {
    const seen = await seesBy(docker, image)
    if (seen !== null) return seen
  }
  return null
}

/** Null: the image is gone. */
async function seesBy(docker: Docker, image: string): Promise<boolean | null> {
  const directory = ownedDirectory(runtimeDirectory())
  const mount = { Type: 'bind', Source: directory.path, Target: '/seen', ReadOnly: true } as const
  try {
    const container = await docker.createContainer({
      Image: image,
      Entrypoint: ['/never-started'],
      Labels: containerLabels('work'),
      HostConfig: { NetworkMode: 'none', Mounts: [mount] },
    })
    await removeByForce(container)
    return true
  } catch (error) {
    if (statusOf(error) === 404 && /no such image/i.test(messageOf(error))) return null
    // moby: 400, "bind source path does not exist"; others say it as the kernel does.
    const isUnseen =
      statusOf(error) !== null && /source path does not exist|no such file or directory/i.test(messageOf(error))
    return isUnseen ? false : await ask('look for a directory of ours', Promise.reject(error), 'SANDBOX_UNAVAILABLE')
  } finally {
    directory.remove()
  }
}

/** Directory of the daemon's own files on this machine; null where it does not say, or is known not to be here. */
export async function rootHere(docker: Docker): Promise<string | null> {
  if ((await known.get(addressOf(docker))?.catch(() => null)) === false) return null
  const info: unknown = await docker.info().catch(() => null)
  if (typeof info !== 'object' || info === null || !('DockerRootDir' in info)) return null
  return typeof info.DockerRootDir === 'string' ? info.DockerRootDir : null
}
