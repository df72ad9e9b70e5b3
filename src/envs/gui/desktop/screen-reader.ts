import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { PaddockError } from '../../../core/index.ts'
import { type Box, sandboxSource } from '../../../sandbox/index.ts'
import { browserUser, InputQueue } from '../browser/index.ts'
import { asked } from './asked.ts'

const unpack = promisify(zlib.zstdDecompress)

/** Where Xvfb keeps its screen as a file in memory (Xserver(1), -fbdir); the agent's user cannot reach it. */
export const framebufferDirectory = '/var/lib/browser/screen'

/** Bytes of the word that stands before every answer: its size. */
const headBytes = 4

/**
 * Rows of the screen out of the X server's own memory. Through the X socket a screen is megabytes over the box's channel;
 * packed in the box it is a hundredth of that. One program of the box stays for it: `sandboxes/gui/screen.py`.
 */
export class ScreenReader implements AsyncDisposable {
  readonly #input = new InputQueue()
  readonly #stop = new AbortController()
  readonly #ended: Promise<void>
  readonly #rowBytes: number
  /** Who waits for an answer, in the order in which they asked. */
  readonly #waiting: ((error: Error | null, packed: Buffer) => void)[] = []
  #pieces: Buffer[] = []
  #have = 0
  #why: string | null = null

  /** Starts the program; the X server runs already, on a screen so many pixels wide. */
  constructor(box: Box, width: number) {
    this.#rowBytes = width * 4
    let words = ''
    const running = box.exec(
      {
        command: ['python3', '-I', '-S', '-c', sandboxSource('gui/screen.py'), `${framebufferDirectory}/Xvfb_screen0`],
        user: browserUser,
        cwd: '/',
        stdin: this.#input,
        output: 'told',
        timeoutMs: 7 * 24 * 3600_000,
        graceMs: 0,
        onStdout: (chunk) => this.#take(Buffer.from(chunk)),
        onStderr: (chunk) => (words = (words + Buffer.from(chunk).toString('utf8')).slice(-500)),
      },
      { signal: this.#stop.signal },
    )
    this.#ended = running.then(
      ({ kind }) => this.#end(`it ended (${kind}) ${words.trim()}`),
      (error: unknown) => this.#end(String(error)),
    )
  }

  /** So many rows from the first on, four bytes a pixel: blue, green, red, nothing. Throws `BROWSER_GONE`. */
  async rows(first: number, count: number): Promise<Buffer> {
    if (this.#why !== null) throw gone(this.#why)
    const request = Buffer.alloc(8)
    request.writeUInt32LE(first, 0)
    request.writeUInt32LE(count, 4)
    const packed = await asked<Buffer>(this.#stop.signal, 'its screen', (done) => {
      this.#waiting.push(done)
      this.#input.push(request)
    })
    const size = count * this.#rowBytes
    const pixels = await unpack(packed, { chunkSize: size, maxOutputLength: size })
    if (pixels.length !== size) throw gone('it gave fewer rows than there are')
    return pixels
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the screen was closed'))
    this.#input.end()
    await this.#ended
  }

  #take(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#have += chunk.length
    while (this.#have >= headBytes) {
      const [first] = this.#pieces
      if (first === undefined || first.length < headBytes) this.#pieces = [Buffer.concat(this.#pieces)]
      const end = headBytes + (this.#pieces[0]?.readUInt32LE(0) ?? 0)
      if (this.#have < end) return
      const all = Buffer.concat(this.#pieces)
      this.#pieces = [all.subarray(end)]
      this.#have = all.length - end
      this.#waiting.shift()?.(null, all.subarray(headBytes, end))
    }
  }

  #end(why: string): void {
    this.#why = why
    for (const done of this.#waiting.splice(0)) done(gone(why), Buffer.alloc(0))
  }
}

function gone(why: string): PaddockError {
  return new PaddockError('BROWSER_GONE', `The screen of the X server cannot be read: ${why}`)
}
