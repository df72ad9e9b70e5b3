import { connect, createServer, type Server } from 'node:net'

/**
 * Runs `work` while no other process of this machine holds `name`. The lock is a listening abstract unix socket
 * (unix(7)): the kernel lets go of it when its owner dies, so there is nothing stale, and a waiter is woken by its end.
 * Where abstract sockets do not exist (not Linux) only this process is excluded.
 */
export async function withLock<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const before = local.get(name) ?? Promise.resolve()
  const mine = before.then(
    () => undefined,
    () => undefined,
  )
  let free: () => void = () => undefined
  const tail = mine.then(() => new Promise<void>((resolve) => (free = resolve)))
  local.set(name, tail)
  try {
    await mine
    signal?.throwIfAborted()
    const server = process.platform === 'linux' ? await acquire(`\0paddock-lock:${name}`, signal) : null
    try {
      return await work()
    } finally {
      await release(server)
    }
  } finally {
    free()
    if (local.get(name) === tail) local.delete(name)
  }
}

const local = new Map<string, Promise<void>>()

const waiters = new WeakMap<Server, Set<{ destroy(): void }>>()

async function acquire(path: string, signal: AbortSignal | undefined): Promise<Server> {
  for (;;) {
    signal?.throwIfAborted()
    const server = await listen(path)
    if (server !== null) return server
    await holderEnds(path, signal)
  }
}

function listen(path: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const sockets = new Set<{ destroy(): void }>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    })
    waiters.set(server, sockets)
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    )
    server.listen(path, () => resolve(server))
  })
}

function holderEnds(path: string, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    const done = (): void => {
      signal?.removeEventListener('abort', done)
      socket.destroy()
      resolve()
    }
    socket.on('error', done).on('close', done).resume()
    signal?.addEventListener('abort', done)
  })
}

async function release(server: Server | null): Promise<void> {
  if (server === null) return
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const socket of waiters.get(server) ?? []) socket.destroy()
  await closed
}
