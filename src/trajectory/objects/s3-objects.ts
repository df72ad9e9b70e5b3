import { setTimeout } from 'node:timers/promises'
import type { AwsClient } from 'aws4fetch'
import type { ObjectStoreKeys } from '../../config/index.ts'
import { type Digest, PaddockError, sha256 } from '../../core/index.ts'
import type { ListedObject, Objects } from './contract.ts'
import { kinds, type ObjectsKind } from './kinds.ts'

/** A bucket, as a configuration has it. */
export interface ObjectStore {
  /** Base URL; null: Amazon's, of the region. */
  readonly endpoint: string | null
  readonly bucket: string
  /** What the keys of all objects begin with. */
  readonly prefix: string
  readonly region: string
  /** The bucket is a part of the path, else of the host's name. */
  readonly pathStyle: boolean
}

/** With the folder of one data directory. */
export interface BucketFolder extends ObjectStore {
  readonly folder: string
}

export interface ObjectsOptions {
  readonly place: BucketFolder
  /** Null: there are none, which who asks for an object is told. */
  readonly keys: ObjectStoreKeys | null
  /** What they hold, which errors go by. Default `blobs`. */
  readonly of?: ObjectsKind
  /** In which an answer begins and ends, beside a millisecond for each kilobyte. Milliseconds. */
  readonly timeoutMs?: number
  /** Before the second try; each further one waits four times as long. Milliseconds. */
  readonly pauseMs?: number
}

const tries = 3
const bytesPerMs = 1000
/** What passes: a timeout, a conflict of two writers, too many requests. Anything from 500 on, too. */
const passing: ReadonlySet<number> = new Set([408, 409, 425, 429])

interface Asked {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  readonly url: URL
  readonly body?: Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** A whole answer. */
interface Answer {
  readonly status: number
  readonly sizeBytes: number
  readonly body: Buffer<ArrayBuffer>
}

/**
 * Blobs as objects of an S3-compatible store, under `<prefix><folder>/<2 hex>/<digest>`. Nothing rests on what such stores do
 * differently: an object is named by its content, so that a condition that is ignored harms nothing; ETags are not looked at; what
 * is read has to have its digest; what was written is looked at again. Throws `BLOBS_UNAVAILABLE` where it does not answer or is too busy,
 * `BLOBS_REFUSED` where it refuses; those of an archive `ARCHIVE_UNAVAILABLE`, `ARCHIVE_REFUSED`.
 */
export class S3Objects implements Objects {
  readonly #place: BucketFolder
  readonly #keys: ObjectStoreKeys | null
  readonly #timeoutMs: number
  readonly #pauseMs: number
  #signing: Promise<AwsClient> | null = null
  readonly #kind: (typeof kinds)[ObjectsKind]
  readonly #called: string
  #conditional: boolean

  constructor({ place, keys, of = 'blobs', timeoutMs = 15_000, pauseMs = 200 }: ObjectsOptions) {
    this.#kind = kinds[of]
    this.#called = `the object store of the ${this.#kind.called}`
    // An archive reads what it wrote, and writes again what is not that.
    this.#conditional = of === 'blobs'
    this.#place = place
    this.#keys = keys
    this.#timeoutMs = timeoutMs
    this.#pauseMs = pauseMs
  }

  keyOf(digest: Digest): string {
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new PaddockError('NOT_FOUND', `${digest} is no SHA-256`)
    const { prefix, folder } = this.#place
    return `${prefix}${folder}/${digest.slice(0, 2)}/${digest}`
  }

  /** Resolves when the object is there with its size. */
  async put(digest: Digest, content: Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<void> {
    const written = await this.#written(digest, content, signal)
    if (written === 412 && (await this.size(digest, signal)) === content.length) return
    // There with another size: somebody's upload that was cut.
    if (written === 412) await this.#written(digest, content, signal, false)
    const size = await this.size(digest, signal)
    if (size === content.length) return
    const is = size === null ? 'is not there' : `has ${size} bytes`
    throw this.#unavailable(`an object of ${content.length} bytes was taken and ${is}`)
  }

  /** Null: there is none. */
  async get(digest: Digest, signal?: AbortSignal): Promise<Uint8Array | null> {
    for (let left = tries - 1; ; left -= 1) {
      const asked = { method: 'GET', url: this.#urlOf(digest), ...(signal === undefined ? {} : { signal }) } as const
      const { status, body } = await this.#ask(asked)
      if (status === 404 && !body.includes('NoSuchBucket')) return null
      if (status !== 200) throw this.#refused(status, body)
      if (sha256(body) === digest) return body
      // An answer without a length may have been cut on its way.
      if (left === 0)
        throw new PaddockError('STORE_CORRUPT', `${this.keyOf(digest)} does not have its digest in ${this.#called}`)
    }
  }

  /** Null: there is none. */
  async size(digest: Digest, signal?: AbortSignal): Promise<number | null> {
    const asked = { method: 'HEAD', url: this.#urlOf(digest), ...(signal === undefined ? {} : { signal }) } as const
    const { status, sizeBytes, body } = await this.#ask(asked)
    if (status === 404) return null
    if (status !== 200) throw this.#refused(status, body)
    return sizeBytes
  }

  /** In order of digest, as far as the store lists them by now. */
  async *list(signal?: AbortSignal): AsyncIterable<ListedObject> {
    for (let after: string | null = null; ;) {
      const { text, next } = await this.#page(after, 1000, signal)
      for (const [, one = ''] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        const digest = /<Key>[^<]*\/([0-9a-f]{64})<\/Key>/.exec(one)?.[1]
        const size = /<Size>(\d+)<\/Size>/.exec(one)?.[1]
        const at = Date.parse(/<LastModified>([^<]+)<\/LastModified>/.exec(one)?.[1] ?? '')
        if (digest !== undefined) yield { digest, sizeBytes: Number(size ?? 0), at: Number.isNaN(at) ? null : at }
      }
      if (next === null || next === after) return
      after = next
    }
  }

  /** Resolves when there is none of that name. */
  async remove(digest: Digest): Promise<void> {
    const { status, body } = await this.#ask({ method: 'DELETE', url: this.#urlOf(digest) })
    if (status !== 404 && (status < 200 || status > 299)) throw this.#refused(status, body)
  }

  /** That the bucket is there and may be listed: names that no object has, of which there is one page everywhere. */
  async probe(signal?: AbortSignal): Promise<void> {
    await this.#page(null, 1, signal, 'none/')
  }

  async #page(
    after: string | null,
    most: number,
    signal?: AbortSignal,
    under = '',
  ): Promise<{ readonly text: string; readonly next: string | null }> {
    const url = this.#bucketUrl('')
    const { prefix, folder } = this.#place
    url.search = new URLSearchParams({
      'list-type': '2',
      'max-keys': String(most),
      prefix: `${prefix}${folder}/${under}`,
      ...(after === null ? {} : { 'continuation-token': after }),
    }).toString()
    const { status, body } = await this.#ask({ method: 'GET', url, ...(signal === undefined ? {} : { signal }) })
    if (status !== 200) throw this.#refused(status, body)
    const text = body.toString('utf8')
    const isMore = /<IsTruncated>\s*true/.test(text)
    const token = /<NextContinuationToken>([^<]*)</.exec(text)?.[1]
    return { text, next: isMore && token !== undefined ? unescaped(token) : null }
  }

  async #written(digest: Digest, content: Uint8Array<ArrayBuffer>, signal?: AbortSignal, once = this.#conditional) {
    const asked = (conditional: boolean): Asked => ({
      method: 'PUT',
      url: this.#urlOf(digest),
      body: content,
      // The object store accepts what has this digest, or refuses it.
      headers: { 'x-amz-content-sha256': digest, ...(conditional ? { 'if-none-match': '*' } : {}) },
      ...(signal === undefined ? {} : { signal }),
    })
    let { status, body } = await this.#ask(asked(once))
    if (once && status === 501) {
      this.#conditional = false
      ;({ status, body } = await this.#ask(asked(false)))
    }
    if (status !== 412 && (status < 200 || status > 299)) throw this.#refused(status, body)
    return status
  }

  async #ask(asked: Asked): Promise<Answer> {
    for (let left = tries - 1, pauseMs = this.#pauseMs; ; left -= 1, pauseMs *= 4) {
      const answer = await this.#once(asked).catch((error: unknown) => {
        if (error instanceof PaddockError || asked.signal?.aborted === true) throw error
        return this.#unavailable(why(error), error)
      })
      const isFinal = !(answer instanceof Error) && answer.status < 500 && !passing.has(answer.status)
      if (isFinal || (!(answer instanceof Error) && answer.status === 501)) return answer
      if (left === 0) throw answer instanceof Error ? answer : this.#unavailable(said(answer.status, answer.body))
      await setTimeout(pauseMs, undefined, asked.signal === undefined ? {} : { signal: asked.signal })
    }
  }

  async #once({ method, url, body, headers = {}, signal }: Asked): Promise<Answer> {
    this.#signing ??= this.#signer()
    const client = await this.#signing
    const limit = new AbortController()
    const within = (bytes: number): NodeJS.Timeout =>
      globalThis.setTimeout(() => limit.abort(new Error('it took too long')), this.#timeoutMs + bytes / bytesPerMs)
    let timer = within(body?.length ?? 0)
    try {
      const request = await client.sign(url.href, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        // Keys are not taken elsewhere.
        redirect: 'manual',
        signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]),
      })
      const response = await fetch(request)
      const sizeBytes = Number(response.headers.get('content-length') ?? 0)
      clearTimeout(timer)
      timer = within(sizeBytes)
      return { status: response.status, sizeBytes, body: Buffer.from(await response.arrayBuffer()) }
    } finally {
      clearTimeout(timer)
    }
  }

  async #signer(): Promise<AwsClient> {
    if (this.#keys === null) {
      throw new PaddockError(this.#kind.refused, `there are no keys for ${this.#called}`, {
        fix: 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
      })
    }
    // Loaded here, so that who has no object store does not load it.
    const aws = await import('aws4fetch')
    const { sessionToken, ...keys } = this.#keys
    const session = sessionToken === null ? {} : { sessionToken }
    return new aws.AwsClient({ ...keys, ...session, service: 's3', region: this.#place.region, retries: 0 })
  }

  #urlOf(digest: Digest): URL {
    return this.#bucketUrl(this.keyOf(digest))
  }

  #unavailable(what: string, cause?: unknown): PaddockError {
    return new PaddockError(this.#kind.unavailable, `${this.#called}: ${what}`, { cause })
  }

  #refused(status: number, body: Buffer): PaddockError {
    return new PaddockError(this.#kind.refused, `${this.#called}: ${said(status, body)}`)
  }

  #bucketUrl(key: string): URL {
    const { endpoint, bucket, region, pathStyle } = this.#place
    const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`)
    const base = url.pathname.replace(/\/$/, '')
    if (!pathStyle) url.host = `${bucket}.${url.host}`
    const path = key.split('/').map(encodeURIComponent).join('/')
    url.pathname = `${base}${pathStyle ? `/${encodeURIComponent(bucket)}` : ''}/${path}`
    return url
  }
}

/** Not the error's own words only: `fetch failed` has what happened as its cause. */
function why(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return 'code' in cause && typeof cause.code === 'string' && cause.message === '' ? cause.code : cause.message
}

function said(status: number, body: Buffer): string {
  const code = /<Code>([\w.]{1,64})<\/Code>/.exec(body.toString('utf8', 0, 4096))?.[1]
  return code === undefined ? `HTTP ${status}` : `HTTP ${status} ${code}`
}

function unescaped(text: string): string {
  const names: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
  return text.replace(/&(amp|lt|gt|quot|apos);/g, (whole, name: string) => names[name] ?? whole)
}
