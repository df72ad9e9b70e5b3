import { MalformedReply, readFields } from './reply-head.ts'

/** 4 GiB: no engine sends a larger chunk. */
const maxSizeDigits = 8
const maxExtensionBytes = 256
const maxTrailerBytes = 8 * 1024

const cr = 0x0d
const lf = 0x0a

const noBytes = Buffer.alloc(0)

type Place = 'size' | 'extension' | 'size-lf' | 'data' | 'data-cr' | 'data-lf' | 'trailers'

/**
 * The bytes of a chunked body (RFC 9112 §7.1) without their framing, across any division into reads. Extensions and trailers are
 * passed over; sizes that are not plain hexadecimal, bare line feeds and missing line ends throw `MalformedReply`.
 */
export class ChunkedBody {
  done = false
  private place: Place = 'size'
  private size = 0
  private digits = 0
  private extension = 0
  private trailers = ''

  /** The body bytes between `at` and `until`, in a buffer of their own; `end` is behind the last byte that was read. */
  push(bytes: Buffer, at: number, until: number): { readonly data: Buffer; readonly end: number } {
    let out = noBytes
    let used = 0
    let i = at
    while (i < until && !this.done) {
      if (this.place === 'data') {
        const end = Math.min(until, i + this.size)
        // A read that ends with this chunk needs no room for more.
        if (used === 0) out = Buffer.allocUnsafe(until - end <= 2 ? end - i : until - i)
        bytes.copy(out, used, i, end)
        used += end - i
        this.size -= end - i
        i = end
        if (this.size === 0) this.place = 'data-cr'
      } else {
        this.step(bytes[i] ?? 0)
        i += 1
      }
    }
    return { data: used === out.length ? out : out.subarray(0, used), end: i }
  }

  private step(byte: number): void {
    switch (this.place) {
      case 'size':
        return this.sizeByte(byte)
      case 'extension':
        return this.extensionByte(byte)
      case 'size-lf':
        expect(byte, lf)
        this.place = this.size === 0 ? 'trailers' : 'data'
        return
      case 'data-cr':
        expect(byte, cr)
        this.place = 'data-lf'
        return
      case 'data-lf':
        expect(byte, lf)
        this.begin()
        return
      default:
        this.trailerByte(byte)
    }
  }

  private begin(): void {
    this.place = 'size'
    this.size = 0
    this.digits = 0
    this.extension = 0
  }

  private sizeByte(byte: number): void {
    const digit = hexDigit(byte)
    if (digit !== -1) {
      this.digits += 1
      if (this.digits > maxSizeDigits) throw new MalformedReply('a chunk size is too large')
      this.size = this.size * 16 + digit
      return
    }
    if (this.digits === 0 || (byte !== cr && byte !== 0x3b)) throw new MalformedReply('a chunk size is not a number')
    this.place = byte === cr ? 'size-lf' : 'extension'
  }

  private extensionByte(byte: number): void {
    this.extension += 1
    if (byte === cr) this.place = 'size-lf'
    else if (this.extension > maxExtensionBytes || (byte < 0x20 && byte !== 0x09) || byte === 0x7f) {
      throw new MalformedReply('a chunk extension is not valid')
    }
  }

  private trailerByte(byte: number): void {
    this.trailers += String.fromCharCode(byte)
    if (this.trailers.length > maxTrailerBytes) throw new MalformedReply('the trailers are too large')
    if (byte !== lf) return
    if (!this.trailers.endsWith('\r\n')) throw new MalformedReply('a trailer is not valid')
    if (this.trailers !== '\r\n' && !this.trailers.endsWith('\r\n\r\n')) return
    readFields(this.trailers.split('\r\n').slice(0, -2))
    this.done = true
  }
}

function expect(byte: number, wanted: number): void {
  if (byte !== wanted) throw new MalformedReply('a chunk does not end where its size says')
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
