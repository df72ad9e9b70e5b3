import type { Duplex } from 'node:stream'
import type { XClient } from 'x11'
import { PaddockError } from '../../../core/index.ts'
import type { Screen } from '../actions/index.ts'
import { asked } from './asked.ts'
import { connect } from './connect.ts'

/** A window as the window manager lists it. */
export interface XWindow {
  readonly id: number
  readonly title: string
  readonly classes: readonly string[]
  readonly isActive: boolean
}

const anyType = 0
const propertyChanges = 0x0040_0000
/** SubstructureNotify and SubstructureRedirect: how a client asks the window manager (EWMH 1.5, "Root Window Properties"). */
const toManager = 0x0018_0000
const clientMessage = 33
/** Says that the request comes from a pager, that is, from the user (EWMH 1.5, `_NET_ACTIVE_WINDOW`). */
const fromPager = 2

/** Longest wait for the window manager to do what it was asked for. */
const managerMs = 30_000

/** The windows of an X display, listed, brought to the front and closed by EWMH, over a connection of its own. */
export class XWindows {
  readonly #client: XClient
  readonly #root: number
  readonly #over: AbortSignal
  readonly #atoms = new Map<string, Promise<number>>()
  /** Called at the next change of the window manager's lists. */
  #waiters: (() => void)[] = []

  private constructor(client: XClient, root: number, over: AbortSignal) {
    this.#client = client
    this.#over = over
    this.#root = root
    client.ChangeWindowAttributes(root, { eventMask: propertyChanges })
    client.on('event', ({ name }) => {
      if (name !== 'PropertyNotify') return
      for (const wake of this.#waiters.splice(0)) wake()
    })
  }

  /** Connects over a stream to the server's socket. Throws `BROWSER_GONE`. */
  static async open(stream: Duplex, cookie: Buffer): Promise<XWindows> {
    const { display, over } = await connect(stream, cookie)
    const [screen] = display.screen
    if (screen === undefined) throw new PaddockError('BROWSER_GONE', 'The X server has no screen')
    return new XWindows(display.client, screen.root, over)
  }

  /** All windows, in the order in which they were opened. */
  async list(): Promise<readonly XWindow[]> {
    const ids = words(await this.#property(this.#root, '_NET_CLIENT_LIST'))
    const [active] = words(await this.#property(this.#root, '_NET_ACTIVE_WINDOW'))
    return Promise.all(
      ids.map(async (id) => ({
        id,
        title: (await this.#text(id, '_NET_WM_NAME')) || (await this.#text(id, 'WM_NAME')),
        classes: (await this.#text(id, 'WM_CLASS')).split('\0').filter((name) => name !== ''),
        isActive: id === active,
      })),
    )
  }

  /** Where a window lies on the screen, and how large it is. */
  async place(id: number): Promise<Screen & { readonly x: number; readonly y: number }> {
    const { width, height } = await asked<Screen>(this.#over, 'GetGeometry', (done) =>
      this.#client.GetGeometry(id, done),
    )
    const at = await asked<{ readonly destX: number; readonly destY: number }>(
      this.#over,
      'TranslateCoordinates',
      (done) => this.#client.TranslateCoordinates(id, this.#root, 0, 0, done),
    )
    return { x: at.destX, y: at.destY, width, height }
  }

  /** Brings a window before all others, with the keyboard; resolves when it is there, or after a while. */
  async raise(id: number): Promise<void> {
    const isFront = async () => {
      const [active] = words(await this.#property(this.#root, '_NET_ACTIVE_WINDOW'))
      const top = words(await this.#property(this.#root, '_NET_CLIENT_LIST_STACKING')).at(-1)
      return top === id && active === id ? true : undefined
    }
    if (await isFront()) return
    await this.#tellManager(id, '_NET_ACTIVE_WINDOW', [fromPager, 0, 0, 0, 0])
    await this.#until(isFront)
  }

  /** The first window of a class, as soon as there is one. Throws `BROWSER_GONE` where none opens. */
  async opened(className: string): Promise<XWindow> {
    const window = await this.#until(async () => ofClass(await this.list(), className))
    if (window === undefined) throw new PaddockError('BROWSER_GONE', `No window of ${className} was opened`)
    return window
  }

  /** The same with the first window of a class, where there is one. */
  async front(className: string): Promise<void> {
    const window = ofClass(await this.list(), className)
    if (window !== undefined) await this.raise(window.id)
  }

  async close(id: number): Promise<void> {
    await this.#tellManager(id, '_NET_CLOSE_WINDOW', [0, fromPager, 0, 0, 0])
  }

  async pointer(): Promise<{ readonly x: number; readonly y: number }> {
    const { rootX: x, rootY: y } = await asked<{ readonly rootX: number; readonly rootY: number }>(
      this.#over,
      'QueryPointer',
      (done) => this.#client.QueryPointer(this.#root, done),
    )
    return { x, y }
  }

  end(): void {
    this.#client.terminate()
  }

  /** What `look` finds, asked again whenever the window manager says that something is another; undefined after a while. */
  async #until<T>(look: () => Promise<T | undefined>): Promise<T | undefined> {
    const cap = AbortSignal.timeout(managerMs)
    for (;;) {
      const changed = Promise.withResolvers<void>()
      this.#waiters.push(changed.resolve)
      cap.addEventListener('abort', () => changed.resolve(), { once: true })
      const found = await look()
      if (found !== undefined || cap.aborted) return found
      await changed.promise
    }
  }

  async #tellManager(window: number, message: string, data: readonly number[]): Promise<void> {
    const event = Buffer.alloc(32)
    event[0] = clientMessage
    event[1] = 32
    event.writeUInt32LE(window, 4)
    event.writeUInt32LE(await this.#atom(message), 8)
    for (const [at, word] of data.entries()) event.writeUInt32LE(word, 12 + at * 4)
    this.#client.SendEvent(this.#root, 0, toManager, event)
    await this.pointer()
  }

  #atom(name: string): Promise<number> {
    const found =
      this.#atoms.get(name) ?? asked(this.#over, 'InternAtom', (done) => this.#client.InternAtom(false, name, done))
    this.#atoms.set(name, found)
    return found
  }

  /** Empty for a window that is gone meanwhile. */
  async #property(window: number, name: string): Promise<Buffer> {
    const atom = await this.#atom(name)
    return asked<{ readonly data: Buffer }>(this.#over, 'GetProperty', (done) =>
      this.#client.GetProperty(0, window, atom, anyType, 0, 10_000, done),
    ).then(
      ({ data }) => data,
      () => Buffer.alloc(0),
    )
  }

  async #text(window: number, name: string): Promise<string> {
    return (await this.#property(window, name)).toString('utf8')
  }
}

function ofClass(windows: readonly XWindow[], className: string): XWindow | undefined {
  return windows.find(({ classes }) => classes.includes(className))
}

function words(data: Buffer): readonly number[] {
  return Array.from({ length: Math.floor(data.length / 4) }, (_, at) => data.readUInt32LE(at * 4))
}
