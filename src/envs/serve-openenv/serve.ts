import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { isPaddockError, PaddockError, type Task } from '../../core/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import type { Environment } from '../contract.ts'
import { bodyOf, served } from '../serving.ts'
import { messageSchema, Refused, rpcCodes, rpcSchema, resultOf, schemaAnswer } from './protocol.ts'
import { HostedSession, submitTool } from './session.ts'

/** Options of {@link serveOpenEnv}. */
export interface ServeOpenEnvOptions {
  readonly environment: Environment
  /** At least one. */
  readonly tasks: readonly Task[]
  readonly sandbox: SandboxProvider
  readonly host?: string
  /** 0, the default, takes a free one. */
  readonly port?: number
  /** Sessions at once, each with a box of its own. Default 4. */
  readonly maxSessions?: number
  /** How long a session may stand without being asked anything, in milliseconds. Default: half an hour. */
  readonly idleMs?: number
}

/** A server that answers. */
export interface ServedOpenEnv extends AsyncDisposable {
  readonly url: string
}

const bodyBytes = 16 << 20

/**
 * Serves an environment's tasks the OpenEnv way: `/ws` (reset, step, state), `/mcp` over HTTP with its sessions, `/health`, `/schema`, `/metadata`. Each
 * session has a box, and the tool `submit` beside the environment's own, whose reward is the verdict's number. No authentication; pages of a browser
 * are refused. Throws `TASK_UNSUPPORTED` for tasks of several steps, with a user, or with tools that answer later, `ENVIRONMENT_INVALID` where a tool is called `submit`, `PORT_IN_USE`.
 */
export async function serveOpenEnv(o: ServeOpenEnvOptions): Promise<ServedOpenEnv> {
  const { environment, tasks } = o
  for (const task of tasks) requireServable(environment, task)
  const house = new Sessions(o)
  const sockets = new WebSocketServer({ noServer: true, maxPayload: bodyBytes })
  const server = await served((request, response) => void answer(house, environment, request, response), {
    ...(o.host === undefined ? {} : { host: o.host }),
    ...(o.port === undefined ? {} : { port: o.port }),
    onUpgrade: (request, socket, head) => {
      if (pathOf(request).pathname !== '/ws') refuse(socket)
      else sockets.handleUpgrade(request, socket, head, (made) => converse(house, made, pathOf(request)))
    },
  })
  return {
    url: server.origin,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.clients) socket.terminate()
      await house[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

function requireServable(environment: Environment, task: Task): void {
  if (environment.steps(task) !== null) {
    throw new PaddockError('TASK_UNSUPPORTED', `${task.name} has several steps, and an episode here has one`, {
      data: { task: task.name },
    })
  }
  if (environment.user(task) !== null || environment.tools(task).some(({ deferred }) => deferred !== undefined)) {
    throw new PaddockError(
      'TASK_UNSUPPORTED',
      `${task.name} has a user or tools that answer later, which is not served`,
      {
        data: { task: task.name },
      },
    )
  }
  if (environment.tools(task).some(({ name }) => name === submitTool.name)) {
    throw new PaddockError('ENVIRONMENT_INVALID', `${environment.name} has a tool called ${submitTool.name} itself`, {
      data: { environment: environment.name, part: 'tools' },
    })
  }
}

/** All sessions, each under its id. */
class Sessions implements AsyncDisposable {
  readonly #o: ServeOpenEnvOptions
  readonly #open = new Map<string, { readonly session: HostedSession; idle: NodeJS.Timeout }>()
  readonly #closing = new Set<Promise<void>>()
  #given = 0

  constructor(o: ServeOpenEnvOptions) {
    this.#o = o
  }

  make(): HostedSession {
    const { environment, tasks, sandbox, maxSessions = 4 } = this.#o
    if (this.#open.size + this.#closing.size >= maxSessions) {
      throw new Refused('CAPACITY_REACHED', `All ${maxSessions} sessions are taken.`)
    }
    const next = (): Task => tasks[this.#given++ % tasks.length] as Task
    const session = new HostedSession({ environment, tasks, sandbox, next })
    this.#open.set(session.id, { session, idle: this.#watch(session.id) })
    return session
  }

  /** The session that is asked something. */
  get(id: unknown): HostedSession {
    const found = typeof id === 'string' ? this.#open.get(id) : undefined
    if (found === undefined) throw new Refused('SESSION_ERROR', `There is no session ${JSON.stringify(id)}.`)
    clearTimeout(found.idle)
    found.idle = this.#watch(found.session.id)
    return found.session
  }

  /** Resolves when its box is gone. */
  async close(id: string): Promise<void> {
    const found = this.#open.get(id)
    if (found === undefined) return
    this.#open.delete(id)
    clearTimeout(found.idle)
    const closed = found.session[Symbol.asyncDispose]()
    const kept = closed.catch(() => undefined)
    this.#closing.add(kept)
    void kept.then(() => this.#closing.delete(kept))
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...this.#open.keys()].map((id) => this.close(id)))
    await Promise.all(this.#closing)
  }

  #watch(id: string): NodeJS.Timeout {
    return setTimeout(() => void this.close(id).catch(() => undefined), this.#o.idleMs ?? 1_800_000).unref()
  }
}

/** One WebSocket: a session of its own, or the one that its address names. Its session ends with it. */
function converse(house: Sessions, socket: WebSocket, { searchParams }: URL): void {
  const say = (frame: object): void => socket.send(JSON.stringify(frame))
  let session: HostedSession
  try {
    const named = searchParams.get('session_id')
    session = named === null ? house.make() : house.get(named)
  } catch (error) {
    say(faultFrame(error))
    socket.close()
    return
  }
  socket.on('error', () => undefined)
  socket.on('close', () => void house.close(session.id).catch(() => undefined))
  socket.on('message', (data) => {
    void hear(house, session.id, Buffer.isBuffer(data) ? data.toString() : '')
      .catch(faultFrame)
      .then((frame) => {
        if (frame === null) socket.close()
        else if (socket.readyState === socket.OPEN) say(frame)
      })
  })
}

/** The answer to a frame; null for a farewell. */
async function hear(house: Sessions, id: string, text: string): Promise<object | null> {
  const read = messageSchema.safeParse(parsed(text))
  if (!read.success)
    throw new Refused('VALIDATION_ERROR', 'A message is {"type": "reset" | "step" | "state" | "close", "data"}.')
  const session = house.get(id)
  switch (read.data.type) {
    case 'reset':
      return { type: 'observation', data: await session.reset(read.data.data) }
    case 'step':
      return { type: 'observation', data: await session.step(read.data.data) }
    case 'state':
      return { type: 'state', data: await session.state() }
    case 'close':
      return null
  }
}

function faultFrame(error: unknown): object {
  const errors = error instanceof Refused && error.code === 'VALIDATION_ERROR' ? { errors: [] } : {}
  const code = error instanceof Refused ? error.code : 'EXECUTION_ERROR'
  return { type: 'error', data: { message: wordsOf(error), code, ...errors } }
}

async function answer(
  house: Sessions,
  environment: Environment,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const say = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body))
  }
  const { pathname } = pathOf(request)
  const { name, verifierVersion } = environment
  switch (`${request.method} ${pathname}`) {
    case 'GET /health':
      return say(200, { status: 'healthy' })
    case 'GET /schema':
      return say(200, schemaAnswer)
    case 'GET /metadata':
      return say(200, { name, description: `The environment ${name} of Paddock`, version: verifierVersion })
    case 'POST /mcp':
      return say(200, await rpc(house, request))
    default:
      return say(404, { detail: `Not served here: ${request.method} ${pathname}` })
  }
}

/** One JSON-RPC request, and its answer or error. */
async function rpc(house: Sessions, request: IncomingMessage): Promise<object> {
  let id: string | number | null = null
  try {
    const read = rpcSchema.safeParse(parsed((await bodyOf(request, bodyBytes)).toString()))
    if (!read.success) return rpcError(null, rpcCodes.invalid, 'This is no JSON-RPC 2.0 request.')
    id = read.data.id ?? null
    const result = await method(house, read.data.method, read.data.params ?? {})
    if (result === null) return rpcError(id, rpcCodes.method, `There is no method ${read.data.method} here.`)
    return { jsonrpc: '2.0', id, result }
  } catch (error) {
    return rpcError(id, error instanceof Refused ? rpcCodes.params : rpcCodes.server, wordsOf(error))
  }
}

async function method(
  house: Sessions,
  name: string,
  params: Readonly<Record<string, unknown>>,
): Promise<object | null> {
  const id = params['session_id']
  switch (name) {
    case 'openenv/session/create':
      return { session_id: house.make().id }
    case 'openenv/session/close':
      await house.close(house.get(id).id)
      return { session_id: id, closed: true }
    case 'tools/list':
      return {
        tools: (await house.get(id).tools()).map(({ input_schema: inputSchema, ...tool }) => ({
          ...tool,
          inputSchema,
        })),
      }
    case 'tools/call': {
      const action = { type: 'call_tool', tool_name: params['name'], arguments: params['arguments'] ?? {} }
      const { observation } = await house.get(id).step(action)
      const { error, result } = observation as { error: { message: string } | null; result: object }
      return error === null ? result : resultOf({ status: 'error', text: error.message })
    }
    default:
      return null
  }
}

function rpcError(id: string | number | null, code: number, message: string): object {
  return { jsonrpc: '2.0', id, error: { code, message } }
}

function wordsOf(error: unknown): string {
  if (isPaddockError(error)) return error.line()
  return error instanceof Error ? error.message : String(error)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refused('INVALID_JSON', 'This is not JSON.')
  }
}

/** Of any request target, `//` and others that are no URL by themselves too. */
function pathOf({ url = '/' }: IncomingMessage): URL {
  return (
    URL.parse(url.startsWith('/') ? `http://localhost${url}` : url, 'http://localhost') ?? new URL('http://localhost')
  )
}

function refuse(socket: Duplex): void {
  socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
}
