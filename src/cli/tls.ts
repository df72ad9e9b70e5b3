import { readFile } from 'node:fs/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Command } from 'commander'
import type { Config, ConfigInput } from '../config/index.ts'
import { isLoopback, PaddockError } from '../core/index.ts'
import type { ControlTls } from '../server/index.ts'
import { wholeNumber } from './cli.ts'

/** What commands take that offer a control listener to others. */
export interface ListenerOptions {
  readonly controlHost?: string
  readonly controlPort?: number
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly plainHttp?: boolean
}

/** Adds {@link ListenerOptions} to a command. */
export function withListenerOptions(command: Command): Command {
  return command
    .option('--control-host <address>', 'address of the control API')
    .option('--control-port <n>', 'its port, 0 takes a free one', wholeNumber(0, 65_535))
    .option('--tls-cert <file>', 'PEM file of the certificate of the control API, which then speaks TLS')
    .option('--tls-key <file>', 'PEM file of its key')
    .option('--plain-http', 'offer the control API beyond this machine without TLS: the network encrypts')
}

/** What they change of the configuration. */
export function listenerOverrides({
  controlHost,
  controlPort,
  tlsCert,
  tlsKey,
  plainHttp,
}: ListenerOptions): ConfigInput {
  return {
    control: {
      ...(controlHost === undefined ? {} : { host: controlHost }),
      ...(controlPort === undefined ? {} : { port: controlPort }),
    },
    tls: {
      ...(tlsCert === undefined ? {} : { cert: tlsCert }),
      ...(tlsKey === undefined ? {} : { key: tlsKey }),
      ...(plainHttp === undefined ? {} : { plainHttp }),
    },
  }
}

/** Throws `PLAIN_HTTP` for a control listener beyond this machine without TLS, unless it is said that the network encrypts. */
export function requireTls({ control, tls }: Pick<Config, 'control' | 'tls'>): void {
  if (isLoopback(control.host) || tls.cert !== null || tls.plainHttp) return
  throw new PaddockError('PLAIN_HTTP', `the control API would be at ${control.host}, beyond this machine`)
}

/** What a control listener that speaks TLS shows; null: it speaks plain HTTP. Throws `CONFIG_INVALID`. */
export async function listenerTls({ tls }: Config): Promise<ControlTls | null> {
  if (tls.cert === null && tls.key === null) return null
  if (tls.cert === null || tls.key === null) {
    throw new PaddockError('CONFIG_INVALID', `tls.${tls.cert === null ? 'key' : 'cert'} is named alone`, {
      fix: 'Name both `tls.cert` and `tls.key`.',
    })
  }
  return { cert: await pem('tls.cert', tls.cert), key: await pem('tls.key', tls.key) }
}

/** From here on this process trusts `tls.ca` besides what it trusted. Throws `CONFIG_INVALID`. */
export async function trustOwnCa({ tls }: Config): Promise<void> {
  if (tls.ca === null) return
  setDefaultCACertificates([...getCACertificates('default'), await pem('tls.ca', tls.ca)])
}

async function pem(key: string, file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new PaddockError('CONFIG_INVALID', `${key} ${file} cannot be read`, { cause })
  })
  if (text.includes('-----BEGIN ')) return text
  throw new PaddockError('CONFIG_INVALID', `${key} ${file} is no PEM file`)
}
