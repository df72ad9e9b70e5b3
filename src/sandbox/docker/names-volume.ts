import type Docker from 'dockerode'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { thisOwner } from '../../core/index.ts'
import { ask } from './daemon.ts'
import { markLabel, ownerLabel, providerLabel } from './labels.ts'

/** What the daemon would write for a container that has a network and reaches nothing. */
const texts = {
  '/etc/hosts': `127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
`,
  // Nobody answers, so that each look-up fails at once.
  '/etc/resolv.conf': 'nameserver 127.0.0.1\n',
}

/** Where a box sees them. */
export const nameFiles: readonly string[] = Object.keys(texts)

/** The files of one box: its own, to be changed by its root, and no part of its image. */
export interface BoxNames {
  readonly mounts: readonly { readonly Type: 'bind'; readonly Source: string; readonly Target: string }[]
  remove(): void
}

/** `GET /info` (Docker Engine API 1.41). */
const infoShape = z.looseObject({
  DefaultRuntime: z.string().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
})

/** Under these a file of ours would belong to somebody else in a box, or be closed to it. */
const remaps = /^name=(?:userns|rootless|selinux)\b/

/**
 * The files by which programs of a box find names. The daemon makes them for a container whose network it sets up, for which it
 * starts itself anew: two fifths of what a box costs. A container that the daemon gives no network has a namespace with
 * nothing but its loopback all the same (runc, `specconv`), and lacks only these files, which are then made here.
 */
export class NamesVolume {
  readonly #docker: Docker
  readonly #name: string
  readonly #directory: string

  private constructor(docker: Docker, name: string, directory: string) {
    this.#docker = docker
    this.#name = name
    this.#directory = directory
  }

  /**
   * In a volume, so that what a box writes into them takes the daemon's disk and not one of ours. Null where we cannot write there as
   * the daemon would, or another container runtime than runc would have to make the loopback.
   */
  static async open(docker: Docker, o: { readonly runtime: string | null; readonly provider: string }) {
    if (o.runtime !== null || process.getuid?.() !== 0) return null
    const info = infoShape.parse(await ask('tell what it is', docker.info(), 'SANDBOX_UNAVAILABLE'))
    if (info.DefaultRuntime !== 'runc' || info.SecurityOptions?.some((option) => remaps.test(option)) === true)
      return null
    const name = `paddock-names-${randomBytes(6).toString('hex')}`
    const labels = { [markLabel]: 'names', [ownerLabel]: thisOwner(), [providerLabel]: o.provider }
    await ask('create a volume', docker.createVolume({ Name: name, Labels: labels }))
    const { Mountpoint } = await ask('look at a volume', docker.getVolume(name).inspect())
    const volume = new NamesVolume(docker, name, Mountpoint)
    // One of this name is here only if the daemon's disk is.
    if (existsSync(Mountpoint)) return volume
    await volume.remove()
    return null
  }

  forBox(): BoxNames {
    const place = join(this.#directory, randomBytes(6).toString('hex'))
    // Boxes mount what is in the volume and not the volume: somebody who prunes volumes may have removed it.
    mkdirSync(place, { recursive: true, mode: 0o755 })
    const mounts = Object.entries(texts).map(([target, text]) => {
      const source = join(place, target.slice('/etc/'.length))
      writeFileSync(source, text)
      chmodSync(source, 0o644)
      return { Type: 'bind' as const, Source: source, Target: target }
    })
    return { mounts, remove: () => rmSync(place, { recursive: true, force: true }) }
  }

  async remove(): Promise<void> {
    await this.#docker.getVolume(this.#name).remove({ force: true })
  }
}

/** As the daemon leaves it in a namespace without an address of version 6. A kernel without it has nothing to turn off. */
export const loopbackAlone: Record<string, string> = existsSync('/proc/sys/net/ipv6')
  ? { 'net.ipv6.conf.all.disable_ipv6': '1' }
  : {}
