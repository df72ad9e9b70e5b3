import { readFile } from 'node:fs/promises'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { type Config, PaddockError } from '../core/index.ts'
import type { ControlTls } from '../server/index.ts'

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
