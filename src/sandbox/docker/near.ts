import type Docker from 'dockerode'
import { z } from 'zod'
import { ask, messageOf, statusOf } from './daemon.ts'
import { removeByForce } from './attached.ts'
import { ownedDirectory, runtimeDirectory } from './host-dirs.ts'
import { containerLabels } from './labels.ts'

/** By address, for clients of one daemon are many. */
const known = new Map<string, Promise<boolean>>()

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
 * `image` is any that it has; nothing of it is run.
 */
export function seesOurFiles(docker: Docker, image: string): Promise<boolean> {
  const address = addressOf(docker)
  const before = known.get(address)
  if (before !== undefined) return before
  const asked = askWhetherSeen(docker, image)
  known.set(address, asked)
  asked.catch(() => known.delete(address))
  return asked
}

async function askWhetherSeen(docker: Docker, image: string): Promise<boolean> {
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
