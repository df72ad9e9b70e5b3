import type { MessagePort } from 'node:worker_threads'
import { type ThreadHello, type ThreadRequest, toWire } from './wire.ts'

/** Result of an operation whose buffers move instead of being copied. */
export class Moved {
  readonly value: unknown
  readonly transfer: readonly ArrayBuffer[]
  constructor(value: unknown, transfer: readonly ArrayBuffer[]) {
    this.value = value
    this.transfer = transfer
  }
}

/** Operations by name. */
export type Operations = Readonly<Record<string, (...args: never[]) => unknown>>

/** Opens what a thread serves and tells the other side; an error there ends the thread. */
export function sayHello<T>(port: MessagePort, open: () => { served: T; value: unknown }): T | null {
  try {
    const { served, value } = open()
    port.postMessage({ hello: true, value } satisfies ThreadHello)
    return served
  } catch (error) {
    port.postMessage({ hello: false, error: toWire(error) } satisfies ThreadHello)
    port.close()
    return null
  }
}

/** Runs one request. Throws what the operation throws. */
export function perform(operations: Operations, request: ThreadRequest): unknown {
  const operation = operations[request.op]
  if (operation === undefined) throw new Error(`unknown store operation ${request.op}`)
  // The caller on the main thread is typed by the contract; the wire between is ours.
  return operation(...(request.args as never[]))
}

/** Serves operations one by one: each begins when the one before has answered. */
export function serveEach(port: MessagePort, operations: Operations, close: () => void): void {
  let before: Promise<void> = Promise.resolve()
  port.on('message', (request: ThreadRequest) => {
    before = before.then(() => answer(port, operations, close, request))
  })
}

async function answer(
  port: MessagePort,
  operations: Operations,
  close: () => void,
  request: ThreadRequest,
): Promise<void> {
  try {
    if (request.op === 'close') {
      close()
      port.postMessage([{ id: request.id, ok: true, value: null }])
      port.close()
      return
    }
    const result = await perform(operations, request)
    if (result instanceof Moved) {
      port.postMessage([{ id: request.id, ok: true, value: result.value }], [...result.transfer])
    } else {
      port.postMessage([{ id: request.id, ok: true, value: result }])
    }
  } catch (error) {
    port.postMessage([{ id: request.id, ok: false, error: toWire(error) }])
  }
}
