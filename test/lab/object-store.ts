/** An S3-compatible store in this process, which checks every signature and misbehaves on order as real ones do. */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { once } from 'node:events'

export const keys = { accessKeyId: 'AKIDPADDOCK', secretAccessKey: 'hidden+secret/word', sessionToken: null }
const region = 'eu-test-1'

export interface Misbehaviour {
  /** Does not answer: ends every connection. */
  away?: boolean
  /** Takes requests and never answers. */
  stalls?: boolean
  /** So many requests are answered 503 SlowDown. */
  slowDown?: number
  /** So many answers end in the middle: `cut` with a length, `short` without one. */
  cut?: number
  short?: number
  /** Takes `If-None-Match` and ignores it, as many do. */
  ignoresConditions?: boolean
  /** Does not know it: 501. */
  refusesConditions?: boolean
  /** So many uploads are answered 409, as where two race. */
  conflicts?: number
  /** So many uploads are kept without their end and answered 200. */
  truncates?: number
  /** Lists nothing that came since. */
  listsLate?: boolean
  /** Answers 403. */
  forbids?: boolean
  /** So many requests are answered 500. */
  fails?: number
  /** So many reads are answered with the bytes of another object. */
  mixesUp?: number
  /** Sends a byte now and then. */
  drips?: boolean
}

export interface FakeStore {
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly objects: Map<string, Buffer>
  /** When each was written: milliseconds since the epoch. */
  readonly written: Map<string, number>
  /** What it does wrong from now on. */
  readonly does: Misbehaviour
  readonly asked: string[]
  close(): Promise<void>
}

export async function startFakeStore(): Promise<FakeStore> {
  const objects = new Map<string, Buffer>()
  const written = new Map<string, number>()
  const does: Misbehaviour = {}
  const asked: string[] = []
  const bucket = 'blobs'
  const server = createServer((request, response) => {
    if (does.away === true) return void request.socket.destroy()
    if (does.stalls === true) return
    answer(request, response).catch(() => request.socket.destroy())
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://store')
    const body = await buffer(request)
    asked.push(`${request.method} ${url.pathname}`)
    const fail = (status: number, code: string): void => {
      const text = request.method === 'HEAD' ? '' : `<Error><Code>${code}</Code></Error>`
      response.writeHead(status, { 'content-type': 'application/xml' }).end(text)
    }
    if (!isSigned(request, url, body)) return fail(403, 'SignatureDoesNotMatch')
    if (does.forbids === true) return fail(403, 'AccessDenied')
    if (takes('slowDown')) return fail(503, 'SlowDown')
    if (takes('fails')) return fail(500, 'InternalError')
    const [, inPath, ...rest] = decodeURIComponent(url.pathname).split('/')
    if (inPath !== bucket) return fail(404, 'NoSuchBucket')
    const key = rest.join('/')
    if (request.method === 'PUT') return put(request, response, key, body, fail)
    if (key === '') return list(url, response)
    if (request.method === 'DELETE') {
      objects.delete(key)
      written.delete(key)
      return void response.writeHead(204).end()
    }
    const other = [...objects.keys()].find((name) => name !== key)
    const found = objects.get(request.method === 'GET' && takes('mixesUp') ? (other ?? key) : key)
    if (found === undefined) return fail(404, 'NoSuchKey')
    const etag = '"not-the-md5"'
    if (takes('short')) return void response.writeHead(200, { etag }).end(found.subarray(0, found.length - 1))
    response.writeHead(200, { 'content-length': found.length, etag })
    if (request.method === 'HEAD') return void response.end()
    if (does.drips === true) return void response.write(found.subarray(0, 1))
    if (!takes('cut')) return void response.end(found)
    response.write(found.subarray(0, found.length >> 1), () => request.socket.destroy())
  }

  function put(
    request: IncomingMessage,
    response: ServerResponse,
    key: string,
    body: Buffer,
    fail: (status: number, code: string) => void,
  ): void {
    const isConditional = request.headers['if-none-match'] !== undefined && does.ignoresConditions !== true
    if (isConditional && does.refusesConditions === true) return fail(501, 'NotImplemented')
    if (takes('conflicts')) return fail(409, 'ConditionalRequestConflict')
    if (isConditional && objects.has(key)) return fail(412, 'PreconditionFailed')
    objects.set(key, takes('truncates') ? body.subarray(0, body.length >> 1) : body)
    if (does.listsLate !== true) written.set(key, Date.now())
    response.writeHead(200, { etag: '"not-the-md5"' }).end()
  }

  /** Pages of two. */
  function list(url: URL, response: ServerResponse): void {
    const prefix = url.searchParams.get('prefix') ?? ''
    const after = url.searchParams.get('continuation-token')?.replace(/^a&b<c /, '') ?? ''
    const names = [...written.keys()].filter((name) => name.startsWith(prefix) && name > after).toSorted()
    const page = names.slice(0, 2)
    const contents = page.map(
      (name) =>
        `<Contents><Key>${name}</Key><LastModified>${new Date(written.get(name) ?? 0).toISOString()}</LastModified><Size>${objects.get(name)?.length}</Size></Contents>`,
    )
    const next = names.length > 2 ? `<NextContinuationToken>a&amp;b&lt;c ${page.at(-1)}</NextContinuationToken>` : ''
    response.writeHead(200, { 'content-type': 'application/xml' })
    response.end(
      `<ListBucketResult><IsTruncated>${names.length > 2}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
    )
  }

  function takes(what: 'slowDown' | 'fails' | 'mixesUp' | 'cut' | 'short' | 'conflicts' | 'truncates'): boolean {
    const left = does[what] ?? 0
    does[what] = Math.max(0, left - 1)
    return left > 0
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    region,
    bucket,
    objects,
    written,
    does,
    asked,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const hash = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** AWS Signature Version 4, from docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. */
function isSigned(request: IncomingMessage, url: URL, body: Buffer): boolean {
  const given = /Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)/.exec(
    request.headers.authorization ?? '',
  )
  if (given === null) return false
  const [, id, day = '', inRegion, names = '', signature] = given
  const payload = String(request.headers['x-amz-content-sha256'])
  if (id !== keys.accessKeyId || inRegion !== region) return false
  if (payload !== 'UNSIGNED-PAYLOAD' && payload !== hash(body)) return false
  const query = [...url.searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join('&')
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = [request.method, url.pathname, query, headers.join(''), names, payload].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const toSign = `AWS4-HMAC-SHA256\n${String(request.headers['x-amz-date'])}\n${scope}\n${hash(canonical)}`
  const key = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${keys.secretAccessKey}`, day))
  return hmac(key, toSign).toString('hex') === signature
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
}
