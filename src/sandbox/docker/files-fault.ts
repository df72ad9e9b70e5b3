import type Docker from 'dockerode'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { removeByForce } from './attached.ts'
import { daemonFault, statusOf } from './daemon.ts'
import { containerLabels } from './labels.ts'

/**
 * Asks the daemon for something that it does with the files of a box. What it fails of twice, while it does the same for
 * a fresh container of the same image in between, is those files, which an agent may have written to that end:
 * `BOX_FILES_UNFIT`, of family `agent`. Anything else is a fault of the daemon. That a path does not exist is an answer.
 */
export async function askOfFiles<T>(
  doing: string,
  on: { readonly docker: Docker; readonly container: Docker.Container; readonly image: string },
  work: (container: Docker.Container) => Promise<T>,
): Promise<T> {
  try {
    return await work(on.container)
  } catch (error) {
    const fault = daemonFault(error, doing, 'BOX_DEAD')
    const isAnswer = !(fault instanceof PaddockError) || fault.code !== 'BOX_DEAD' || statusOf(error) === 404
    if (isAnswer || !(await isDoneForFresh(on, work))) throw statusOf(error) === 404 ? error : fault
  }
  try {
    return await work(on.container)
  } catch (error) {
    if (statusOf(error) === 404) throw error
    const fault = daemonFault(error, doing, 'BOX_DEAD')
    throw fault instanceof PaddockError && fault.code === 'BOX_DEAD'
      ? new PaddockError('BOX_FILES_UNFIT', fault.message, { cause: error })
      : fault
  }
}

async function isDoneForFresh(
  { docker, image }: { readonly docker: Docker; readonly image: string },
  work: (container: Docker.Container) => Promise<unknown>,
): Promise<boolean> {
  const options = { Image: image, Cmd: ['/'], Labels: containerLabels('work') }
  const fresh = await docker.createContainer(options).catch(() => null)
  if (fresh === null) return false
  try {
    await work(fresh)
    return true
  } catch (error) {
    return statusOf(error) === 404
  } finally {
    await removeByForce(fresh).catch(() => undefined)
  }
}

/** What the daemon's own programs read of a container whenever they pack its files; of a pipe they would never be done. */
const readByTheDaemon = ['/etc/passwd', '/etc/group', '/etc/nsswitch.conf']

/** `FileMode` of Go (`io/fs`), which the daemon's `X-Docker-Container-Path-Stat` tells. */
const goIsDirectory = 2 ** 31
const goIsLink = 2 ** 27
const goIsIrregular = 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19

/** Throws `BOX_FILES_UNFIT` where one of {@link readByTheDaemon} is neither a file nor missing. */
export async function requirePackable(container: Docker.Container): Promise<void> {
  const unfit = await Promise.all(readByTheDaemon.map((path) => isNoFile(container, path)))
  const path = readByTheDaemon[unfit.indexOf(true)]
  if (path === undefined) return
  throw new PaddockError('BOX_FILES_UNFIT', `${path} of the box is no file, and nothing can be packed without it.`)
}

async function isNoFile(container: Docker.Container, path: string): Promise<boolean> {
  const stat = await statIn(container, path)
  if (stat === null) return false
  if ((stat.mode & goIsLink) === 0) return (stat.mode & (goIsDirectory | goIsIrregular)) !== 0
  const end = await statIn(container, stat.linkTarget)
  return end !== null && (end.mode & goIsIrregular) !== 0
}

/** `X-Docker-Container-Path-Stat` of `HEAD /containers/{id}/archive` (Docker Engine API). */
const statHeader = z.object({ headers: z.object({ 'x-docker-container-path-stat': z.string() }) })
const pathStat = z.object({ mode: z.number(), linkTarget: z.string() })

/** Null for what does not exist, or leads nowhere. */
async function statIn(container: Docker.Container, path: string): Promise<z.infer<typeof pathStat> | null> {
  try {
    const answer = (await container.infoArchive({ path })) as NodeJS.ReadableStream
    answer.resume()
    const { headers } = statHeader.parse(answer)
    return pathStat.parse(JSON.parse(Buffer.from(headers['x-docker-container-path-stat'], 'base64').toString()))
  } catch (error) {
    if (statusOf(error) !== null) return null
    throw daemonFault(error, 'look into a container', 'BOX_DEAD')
  }
}
