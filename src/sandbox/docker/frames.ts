/**
 * The wire between Paddock and a box's PID 1 (sandboxes/supervisor/supervisor.c holds the other end):
 * `u32 length of what follows | u8 type | u32 command id | payload`, little endian.
 */
export const toBox = { exec: 1, stdin: 2, kill: 3, killBackground: 4, extend: 5, ping: 6, resize: 7 } as const
export const fromBox = {
  hello: 65,
  stdout: 66,
  stderr: 67,
  exit: 68,
  stdinAck: 69,
  pong: 70,
  backgroundDone: 71,
} as const

/** Version that HELLO must carry. */
export const protocolVersion = 1

/** Largest request, arguments and environment included. The supervisor's buffer holds twice that. */
export const maxRequestBytes = 1 << 20

/** Input bytes of one command that may be under way and not yet taken. */
export const stdinWindowBytes = 256 << 10

const headerBytes = 9

/** One frame. */
export function frame(type: number, id: number, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const bytes = Buffer.allocUnsafe(headerBytes + payload.byteLength)
  bytes.writeUInt32LE(payload.byteLength + 5, 0)
  bytes[4] = type
  bytes.writeUInt32LE(id, 5)
  bytes.set(payload, headerBytes)
  return bytes
}

/** Payload of an EXEC frame. */
export interface ExecRequest {
  readonly timeoutMs: number
  readonly graceMs: number
  readonly maxOutputBytes: number
  readonly keepBackground: boolean
  /** The one argument is a line for a shell. */
  readonly shell: boolean
  readonly hasStdin: boolean
  readonly user: string
  readonly cwd: string
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** A terminal of this size in place of three pipes. */
  readonly terminal: TerminalSize | null
}

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** Payload of a RESIZE frame, and the end of an EXEC frame with a terminal. */
export function encodeSize(size: TerminalSize): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16LE(size.columns, 0)
  bytes.writeUInt16LE(size.rows, 2)
  return bytes
}

export function encodeExec(r: ExecRequest): Buffer {
  const env = Object.entries(r.env).map(([name, value]) => `${name}=${value}`)
  const head = Buffer.alloc(17)
  head.writeUInt32LE(r.timeoutMs, 0)
  head.writeUInt32LE(r.graceMs, 4)
  head.writeBigUInt64LE(BigInt(r.maxOutputBytes), 8)
  head[16] = (r.keepBackground ? 1 : 0) | (r.shell ? 2 : 0) | (r.hasStdin ? 4 : 0) | (r.terminal === null ? 0 : 8)
  const lists = [strings([r.user, r.cwd]), count(r.argv), strings(r.argv), count(env), strings(env)]
  return Buffer.concat([head, ...lists, ...(r.terminal === null ? [] : [encodeSize(r.terminal)])])
}

function strings(list: readonly string[]): Buffer {
  return Buffer.from(list.map((text) => `${text}\0`).join(''), 'utf8')
}

function count(list: readonly string[]): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(list.length)
  return bytes
}

/** Payload of an EXIT frame. */
export interface ExitFacts {
  readonly kind: 'exited' | 'signaled' | 'timed_out' | 'keeper_lost' | 'refused'
  /** Exit code or signal number. */
  readonly value: number
  readonly truncated: { readonly stdout: number; readonly stderr: number }
  readonly killed: number
  readonly oomKills: number
  /** Not 0: something could not be killed; the box is not to be used any more. */
  readonly survivors: number
  readonly durationMs: number
  /** Why it was refused, or why its program could not begin; else empty. */
  readonly message: string
}

const exitKinds = ['exited', 'signaled', 'timed_out', 'keeper_lost', 'refused'] as const

export function decodeExit(payload: Buffer): ExitFacts {
  return {
    kind: exitKinds[payload.readUInt8(0)] ?? 'keeper_lost',
    value: payload.readInt32LE(1),
    truncated: { stdout: Number(payload.readBigUInt64LE(5)), stderr: Number(payload.readBigUInt64LE(13)) },
    killed: payload.readUInt32LE(21),
    oomKills: payload.readUInt32LE(25),
    survivors: payload.readUInt32LE(29),
    durationMs: Number(payload.readBigUInt64LE(33)) / 1000,
    message: payload.subarray(41).toString('utf8'),
  }
}

/**
 * Cuts a byte stream into frames. The payload given to `take` is only valid during the call: bytes are gathered in one
 * buffer that is used again, so that a flood of output makes no garbage here.
 */
export class FrameReader {
  readonly #take: (type: number, id: number, payload: Buffer) => void
  #gathered = Buffer.allocUnsafe(256 << 10)
  #length = 0

  constructor(take: (type: number, id: number, payload: Buffer) => void) {
    this.#take = take
  }

  push(chunk: Buffer): void {
    this.#makeRoom(chunk.length)
    chunk.copy(this.#gathered, this.#length)
    this.#length += chunk.length
    const bytes = this.#gathered
    let at = 0
    while (this.#length - at >= headerBytes) {
      const end = at + bytes.readUInt32LE(at) + 4
      if (this.#length < end) break
      this.#take(bytes.readUInt8(at + 4), bytes.readUInt32LE(at + 5), bytes.subarray(at + headerBytes, end))
      at = end
    }
    bytes.copyWithin(0, at, this.#length)
    this.#length -= at
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#gathered.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#gathered.length * 2))
    this.#gathered.copy(larger, 0, 0, this.#length)
    this.#gathered = larger
  }
}

/**
 * Splits Docker's attach stream without a terminal: `u8 stream | 3 zero bytes | u32 length (big endian) | bytes`
 * (Docker Engine API, "Attach to a container"). Pieces are passed on as they come.
 */
export class AttachReader {
  readonly #stdout: (piece: Buffer) => void
  readonly #stderr: (piece: Buffer) => void
  #head: Buffer = Buffer.alloc(0)
  #stream = 0
  #left = 0

  constructor(stdout: (piece: Buffer) => void, stderr: (piece: Buffer) => void) {
    this.#stdout = stdout
    this.#stderr = stderr
  }

  push(chunk: Buffer): void {
    let bytes = chunk
    while (bytes.length > 0) {
      if (this.#left === 0) {
        const wanted = 8 - this.#head.length
        this.#head = Buffer.concat([this.#head, bytes.subarray(0, wanted)])
        bytes = bytes.subarray(wanted)
        if (this.#head.length < 8) return
        this.#stream = this.#head.readUInt8(0)
        this.#left = this.#head.readUInt32BE(4)
        this.#head = Buffer.alloc(0)
        continue
      }
      const piece = bytes.subarray(0, this.#left)
      this.#left -= piece.length
      bytes = bytes.subarray(piece.length)
      if (this.#stream === 2) this.#stderr(piece)
      else this.#stdout(piece)
    }
  }
}
