import type Docker from 'dockerode'
import { statfs } from 'node:fs/promises'
import { rootHere } from './near.ts'

const tickMs = 1000
/** The disk is asked every tick; boxes are measured, which takes long, only when so much was written by anybody. */
const noticeableBytes = 32 << 20
/** Where the daemon's disk cannot be asked, boxes are measured this often. */
const blindTicks = 15

export interface WatchedBox {
  readonly id: string
  readonly limitBytes: number
  /** Told at every look at which the box holds more than it may. */
  onFull(): void
}

/**
 * Holds boxes to the disk that they may use, in all files together, where the storage driver has no quota of its own:
 * measures what a box wrote and tells it when that is too much. Late by a second or two, which bounds the damage.
 */
export class DiskWatch {
  readonly #docker: Docker
  readonly #boxes = new Set<WatchedBox>()
  readonly #full = new Set<WatchedBox>()
  #timer: NodeJS.Timeout | null = null
  #looking = false
  #root: Promise<string | null> | null = null
  #usedBytes: number | null = null
  #ticks = 0

  constructor(docker: Docker) {
    this.#docker = docker
  }

  watch(box: WatchedBox): () => void {
    this.#boxes.add(box)
    this.#timer ??= setInterval(() => void this.#tick(), tickMs).unref()
    return () => {
      this.#boxes.delete(box)
      this.#full.delete(box)
      if (this.#boxes.size > 0 || this.#timer === null) return
      clearInterval(this.#timer)
      this.#timer = null
    }
  }

  async #tick(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    try {
      const suspects = (await this.#hasGrown()) ? this.#boxes : this.#full
      for (const box of suspects) await this.#look(box)
    } finally {
      this.#looking = false
    }
  }

  async #hasGrown(): Promise<boolean> {
    this.#ticks += 1
    const used = await this.#used()
    if (used === null) return this.#ticks % blindTicks === 0
    const before = this.#usedBytes
    if (before !== null && used < before + noticeableBytes) {
      // What was freed by one may be taken by another.
      this.#usedBytes = Math.min(before, used)
      return false
    }
    this.#usedBytes = used
    return before !== null
  }

  async #look(box: WatchedBox): Promise<void> {
    const sizeBytes = await this.#sizeOf(box.id)
    if (!this.#boxes.has(box)) return
    if (sizeBytes > box.limitBytes) {
      this.#full.add(box)
      box.onFull()
    } else this.#full.delete(box)
  }

  async #sizeOf(id: string): Promise<number> {
    try {
      // `size` is a query parameter of the daemon that the typings do not know for one container; a list takes it.
      const [facts] = await this.#docker.listContainers({ all: true, size: true, filters: { id: [id] } })
      return facts !== undefined && 'SizeRw' in facts && typeof facts.SizeRw === 'number' ? facts.SizeRw : 0
    } catch {
      return 0
    }
  }

  async #used(): Promise<number | null> {
    this.#root ??= rootHere(this.#docker)
    const root = await this.#root
    if (root === null) return null
    try {
      const { blocks, bfree, bsize } = await statfs(root)
      return (blocks - bfree) * bsize
    } catch {
      return null
    }
  }
}
