import type { Duplex } from 'node:stream'
import type { Damage, Display, XTest } from 'x11'
import { PaddockError } from '../../../core/index.ts'
import type { Key, Screen } from '../actions/index.ts'
import { asked } from './asked.ts'
import { connect, type Connection } from './connect.ts'

/** Keysym of NoSymbol (X11/X.h): a key code that types nothing. */
const noSymbol = 0
const shiftKeysym = 0xffe1
const newLayoutMs = 400

/** Rows of the screen, from the first on and before the end. */
export interface Rows {
  readonly first: number
  readonly end: number
}

/** A connection to an X server: input by XTEST, repaints by DAMAGE. */
export class XDisplay implements AsyncDisposable {
  readonly screen: Screen
  /** Milliseconds of `performance.now()` at which something was last painted. */
  lastDamageAt = 0
  /** How many repaints the server has told of. */
  paints = 0
  readonly #display: Display
  readonly #test: XTest
  readonly #root: number
  /** Key code and whether Shift is needed, by keysym. */
  readonly #codes: Map<number, { readonly code: number; readonly shifted: boolean }>
  /** Key codes that type nothing, for characters that the layout lacks. */
  readonly #spare: readonly number[]
  readonly #painters = new Set<(rows: Rows) => void>()
  #waiters: (() => void)[] = []
  /** The server has hung up. */
  readonly #over: AbortSignal

  private constructor(
    { display, over }: Connection,
    test: XTest,
    damage: Damage,
    codes: Map<number, { readonly code: number; readonly shifted: boolean }>,
    spare: readonly number[],
  ) {
    const [screen] = display.screen
    if (screen === undefined) throw new PaddockError('BROWSER_GONE', 'The X server has no screen')
    this.#display = display
    this.#over = over
    over.addEventListener('abort', () => this.#wake(), { once: true })
    this.#test = test
    this.#codes = codes
    this.#spare = spare
    this.#root = screen.root
    this.screen = { width: screen.pixel_width, height: screen.pixel_height }
    const id = display.client.AllocID()
    damage.Create(id, this.#root, damage.ReportLevel.RawRectangles)
    display.client.on('event', ({ name, area }) => {
      if (name !== 'DamageNotify' || area === undefined) return
      this.lastDamageAt = performance.now()
      this.paints += 1
      for (const tell of this.#painters) tell({ first: area.y, end: area.y + area.h })
      this.#wake()
    })
  }

  /** Connects over a stream to the server's socket. Throws `BROWSER_GONE`. */
  static async open(stream: Duplex, cookie: Buffer): Promise<XDisplay> {
    const connection = await connect(stream, cookie)
    const { over } = connection
    const { client, min_keycode: first, max_keycode: last } = connection.display
    const test = await asked<XTest>(over, 'XTEST', (done) => client.require('xtest', done))
    const damage = await asked<Damage>(over, 'DAMAGE', (done) => client.require('damage', done))
    await asked<void>(over, 'DAMAGE', (done) => damage.QueryVersion(1, 1, (error) => done(error, undefined)))
    const rows = await asked<readonly (readonly number[])[]>(over, 'the keyboard', (done) =>
      client.GetKeyboardMapping(first, last - first + 1, done),
    )
    const codes = new Map<number, { readonly code: number; readonly shifted: boolean }>()
    const spare: number[] = []
    for (const [at, [plain = noSymbol, shifted = noSymbol]] of rows.entries()) {
      const code = first + at
      if (plain === noSymbol && shifted === noSymbol) spare.push(code)
      if (shifted !== noSymbol && !codes.has(shifted)) codes.set(shifted, { code, shifted: true })
      if (plain !== noSymbol) codes.set(plain, { code, shifted: false })
    }
    return new XDisplay(connection, test, damage, codes, spare)
  }

  /** True when the server has hung up. */
  get gone(): boolean {
    return this.#over.aborted
  }

  move(x: number, y: number): void {
    this.#test.FakeInput(this.#test.MotionNotify, 0, 0, this.#root, Math.round(x), Math.round(y))
  }

  /** Buttons as X counts them: 1 left, 2 middle, 3 right, 4 to 7 the wheel up, down, left, right. The server waits first. */
  button(button: number, down: boolean, waitMs = 0): void {
    const { ButtonPress, ButtonRelease } = this.#test
    this.#test.FakeInput(down ? ButtonPress : ButtonRelease, button, waitMs, this.#root, 0, 0)
  }

  key(key: Key, down: boolean): void {
    const found = this.#codes.get(key.keysym)
    if (found !== undefined) this.#code(found.code, down)
  }

  /**
   * Gives keys to the characters that the layout lacks, and says how many of them there was room for. The programs on the
   * screen read the new layout in their own time, which X tells nobody of: hence the pause.
   */
  async learn(characters: readonly string[]): Promise<number> {
    const room = characters.slice(0, this.#spare.length)
    if (room.length === 0) return 0
    for (const [at, character] of room.entries()) {
      const [code, keysym] = [this.#spare[at] ?? 0, keysymOf(character)]
      for (const [known, { code: taken }] of this.#codes) if (taken === code) this.#codes.delete(known)
      this.#display.client.ChangeKeyboardMapping(code, 2, [keysym, keysym])
      this.#codes.set(keysym, { code, shifted: false })
    }
    await this.sync()
    await new Promise((resolve) => setTimeout(resolve, newLayoutMs))
    return room.length
  }

  /** True when a key types this character. */
  knows(character: string): boolean {
    return this.#codes.has(keysymOf(character))
  }

  /** Types one character that a key is known for. */
  type(character: string): void {
    const found = this.#codes.get(keysymOf(character))
    if (found === undefined) return
    const shift = found.shifted ? this.#codes.get(shiftKeysym) : undefined
    if (shift !== undefined) this.#code(shift.code, true)
    this.#code(found.code, true)
    this.#code(found.code, false)
    if (shift !== undefined) this.#code(shift.code, false)
  }

  /** Resolves when the server has taken everything that was sent before. Throws `BROWSER_GONE`. */
  async sync(): Promise<void> {
    await asked<void>(this.#over, 'QueryPointer', (done) =>
      this.#display.client.QueryPointer(this.#root, (error) => done(error, undefined)),
    )
  }

  /** Calls back at each repaint, until the function given back is called. */
  onPaint(tell: (rows: Rows) => void): () => void {
    this.#painters.add(tell)
    return () => this.#painters.delete(tell)
  }

  /** Resolves true when nothing was painted for `quietMs`, false at `capMs`. */
  async quiet(quietMs: number, capMs: number): Promise<boolean> {
    const until = performance.now() + capMs
    for (;;) {
      const now = performance.now()
      const rest = this.lastDamageAt + quietMs - now
      if (rest <= 0) return true
      if (now >= until || this.gone) return false
      const damaged = new Promise<void>((resolve) => this.#waiters.push(resolve))
      const timer = Promise.withResolvers<void>()
      const handle = setTimeout(timer.resolve, Math.min(rest, until - now))
      await Promise.race([damaged, timer.promise])
      clearTimeout(handle)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#display.client.terminate()
  }

  #code(code: number, down: boolean): void {
    const { KeyPress, KeyRelease } = this.#test
    this.#test.FakeInput(down ? KeyPress : KeyRelease, code, 0, this.#root, 0, 0)
  }

  #wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const wake of waiters) wake()
  }
}

/** Keysym of a character: Latin-1 is itself, the rest its code point with a bit of its own (X11/keysymdef.h). */
function keysymOf(character: string): number {
  if (character === '\n' || character === '\r') return 0xff0d
  if (character === '\t') return 0xff09
  const point = character.codePointAt(0) ?? 0
  return point < 0x100 ? point : 0x0100_0000 + point
}
