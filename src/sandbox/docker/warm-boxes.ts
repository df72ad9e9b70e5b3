import type { Clock } from '../../core/index.ts'
import type { BoxRole, BoxSpec, BoxWish, WarmSpec } from '../contract/index.ts'
import type { DockerBox } from './box.ts'
import { defaultModelPort } from './hardened.ts'
import { DockerSlot } from './model-socket.ts'

/** A box that waits longer is ended: what it was made from may have changed. */
const oldestMs = 10 * 60_000
const answerMs = 5000
/** So many are made at a time, so that boxes that are needed now do not queue behind boxes that may be. */
const atOnce = 2

interface WarmBox {
  readonly box: DockerBox
  /** The model path it was made with; the claimer's socket is put behind it. */
  readonly socket: DockerSlot | null
  readonly madeAt: number
}

interface Entry {
  readonly key: string
  readonly role: BoxRole
  readonly made: Promise<WarmBox | null>
  isMade: boolean
}

interface Want {
  readonly key: string
  readonly spec: WarmSpec
}

export interface WarmBoxesOptions {
  readonly clock: Clock
  /** Of each role, so that boxes of verifiers, which wait long, leave room for agents'. */
  readonly most: number
  /** They wait paused, so that nothing an image starts by itself runs meanwhile. */
  readonly parked: boolean
  readonly start: (spec: BoxSpec) => Promise<DockerBox>
  readonly openModelSocket: () => Promise<DockerSlot>
}

/**
 * Boxes that are made before they are asked for, in the order in which they are wanted. Each is handed out once, after
 * its supervisor has answered, and never comes back. They wait running unless `parked`: an idle supervisor takes no
 * processor time, and unlike a paused one it ends by itself when its owner dies.
 */
export class WarmBoxes {
  readonly #o: WarmBoxesOptions
  #wants: Want[] = []
  readonly #entries: Entry[] = []
  readonly #ending = new Set<Promise<unknown>>()
  #closed = false

  constructor(options: WarmBoxesOptions) {
    this.#o = options
  }

  want(spec: WarmSpec): BoxWish {
    const want = { key: keyOf(spec), spec }
    this.#wants.push(want)
    this.#fill()
    const dispose = () => {
      if (take(this.#wants, (one) => one === want) !== null) this.#trim(want.key)
    }
    return {
      [Symbol.dispose]: dispose,
      [Symbol.asyncDispose]: async () => {
        dispose()
        await Promise.allSettled(this.#ending)
      },
    }
  }

  /** A box of exactly this kind, running and bound to the caller's socket; null when there is none. Never throws. */
  async claim(spec: BoxSpec): Promise<DockerBox | null> {
    const key = keyOf(spec)
    take(this.#wants, (want) => want.key === key)
    const entry =
      take(this.#entries, (one) => one.key === key && one.isMade) ?? take(this.#entries, (one) => one.key === key)
    this.#fill()
    if (entry === null) return null
    const warm = await entry.made
    this.#fill()
    if (warm === null) return null
    const socket = spec.modelPath?.socket
    if (await this.#isFit(warm)) {
      if (warm.socket === null) return warm.box
      if (socket instanceof DockerSlot) {
        socket.lend(warm.socket)
        return warm.box
      }
    }
    await this.#end(warm)
    return null
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#wants.length = 0
    for (const entry of this.#entries.splice(0)) this.#discard(entry)
    await Promise.allSettled(this.#ending)
  }

  async #isFit({ box, madeAt }: WarmBox): Promise<boolean> {
    if (this.#o.clock.monotonic() - madeAt > oldestMs) return false
    try {
      await box.release('parked')
    } catch {
      return false
    }
    return box.isAlive(answerMs)
  }

  #fill(): void {
    while (!this.#closed && this.#making() < atOnce) {
      const want = this.#wants.find(
        ({ key, spec }) =>
          count(this.#entries, key) < count(this.#wants, key) &&
          this.#entries.filter(({ role }) => role === spec.labels.role).length < this.#o.most,
      )
      if (want === undefined) return
      const { role } = want.spec.labels
      const entry: Entry = { key: want.key, role, made: this.#make(want.spec), isMade: false }
      this.#entries.push(entry)
      void entry.made.then((warm) => {
        entry.isMade = true
        const forget = (): void => void take(this.#entries, (one) => one === entry)
        if (warm === null) {
          // Whoever needs such a box makes it and learns why it cannot be made; here it would be tried for ever.
          forget()
          this.#wants = this.#wants.filter(({ key }) => key !== want.key)
        } else void warm.box.died.then(forget)
        this.#fill()
      })
    }
  }

  #making(): number {
    return this.#entries.filter((entry) => !entry.isMade).length
  }

  async #make(spec: WarmSpec): Promise<WarmBox | null> {
    let socket: DockerSlot | null = null
    try {
      const { modelPath, ...rest } = spec
      socket = modelPath === undefined ? null : await this.#o.openModelSocket()
      const box = await this.#o.start({ ...rest, ...(socket === null ? {} : { modelPath: { ...modelPath, socket } }) })
      void box.died.then(() => socket?.close())
      if (this.#o.parked) await box.hold('parked')
      return { box, socket, madeAt: this.#o.clock.monotonic() }
    } catch {
      await socket?.close()
      return null
    }
  }

  /** Ends boxes of a kind that nobody wants any more. */
  #trim(key: string): void {
    while (count(this.#entries, key) > count(this.#wants, key)) {
      const entry = take(this.#entries, (one) => one.key === key)
      if (entry !== null) this.#discard(entry)
    }
    this.#fill()
  }

  #discard(entry: Entry): void {
    const ending = entry.made.then((warm) => (warm === null ? undefined : this.#end(warm)))
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }

  async #end({ box, socket }: WarmBox): Promise<void> {
    await Promise.allSettled([box.destroy(), socket?.close()])
  }
}

/** What two boxes must share to be the same to a rollout: everything but their socket, their rollout and their age. */
function keyOf(spec: BoxSpec | WarmSpec): string {
  const { image, env, modelPath, labels, mounts, egress, profile, workdir, memoryMb, cpus, pids, fileMb, diskMb } = spec
  return JSON.stringify([
    typeof image === 'string' ? image : image.tag,
    Object.entries(env ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    modelPath === undefined ? null : (modelPath.port ?? defaultModelPort),
    [labels.role, labels.run ?? null],
    (mounts ?? []).map((mount) => [mount.bundle.volume, mount.target]),
    (egress ?? 'none') === 'none',
    [profile, workdir ?? null, memoryMb ?? null, cpus ?? null, pids ?? null, fileMb ?? null, diskMb ?? null],
  ])
}

function count(list: readonly { readonly key: string }[], key: string): number {
  return list.filter((one) => one.key === key).length
}

/** Takes the first that fits out of a list. */
function take<T>(list: T[], fits: (one: T) => boolean): T | null {
  const at = list.findIndex(fits)
  return at < 0 ? null : (list.splice(at, 1)[0] ?? null)
}
