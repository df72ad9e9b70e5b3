import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { sha256 } from '../../core/index.ts'
import { tarOf } from './tar.fixture.ts'

/** A registry on loopback with one image (OCI distribution, pulling alone), and what it was asked for. */
export async function startRegistry(image: { readonly name: string; readonly tag: string; readonly file: string }) {
  const layerTar = await tarOf({ [image.file]: 'from the registry\n' })
  const layer = gzipSync(layerTar)
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { WorkingDir: '/from-the-registry' },
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layerTar)}`] },
      history: [{ created: '2026-01-01T00:00:00Z' }],
    }),
  )
  const type = 'application/vnd.docker.distribution.manifest.v2+json'
  const part = (mediaType: string, data: Buffer) => ({ mediaType, size: data.length, digest: `sha256:${sha256(data)}` })
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: type,
      config: part('application/vnd.docker.container.image.v1+json', config),
      layers: [part('application/vnd.docker.image.rootfs.diff.tar.gzip', layer)],
    }),
  )
  const blobs = new Map([config, layer].map((data) => [`sha256:${sha256(data)}`, data]))
  const asked: string[] = []
  const server = createServer((request, response) => {
    const url = request.url ?? ''
    if (url === '/v2/') return void response.end('{}')
    asked.push(url)
    const base = `/v2/${image.name}`
    const digest = `sha256:${sha256(manifest)}`
    if (url === `${base}/manifests/${image.tag}` || url === `${base}/manifests/${digest}`) {
      response.writeHead(200, {
        'content-type': type,
        'docker-content-digest': digest,
        'content-length': manifest.length,
      })
      return void response.end(request.method === 'HEAD' ? undefined : manifest)
    }
    const blob = blobs.get(url.slice(`${base}/blobs/`.length))
    if (blob === undefined) return void response.writeHead(404).end('{}')
    response.writeHead(200, { 'content-length': blob.length }).end(blob)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    digest: `sha256:${sha256(manifest)}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
