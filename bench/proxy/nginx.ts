/** nginx with one worker and buffering off: the floor. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

/** Null where it is not installed. */
export async function startNginx(
  engineUrl: string,
  scratch: string,
): Promise<{ name: string; url: string; pid: number; stop(): void } | null> {
  if (spawnSync('nginx', ['-v']).error !== undefined) return null
  const port = await freePort()
  const config = join(scratch, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; worker_processes 1; pid ${scratch}/nginx.pid; error_log ${scratch}/error.log;
     worker_rlimit_nofile 20000; events { worker_connections 10000; }
     http { access_log off; client_body_temp_path ${scratch}/b; proxy_temp_path ${scratch}/p; fastcgi_temp_path ${scratch}/f;
       uwsgi_temp_path ${scratch}/u; scgi_temp_path ${scratch}/s;
       upstream e { server ${new URL(engineUrl).host}; keepalive 1024; }
       server { listen 127.0.0.1:${port} backlog=4096; location / { proxy_pass http://e; proxy_http_version 1.1;
         proxy_set_header Connection ""; proxy_buffering off; keepalive_requests 1000000; } } }`,
  )
  const child = spawn('nginx', ['-c', config], { stdio: 'ignore' })
  await Promise.race([
    listening(port),
    once(child, 'exit').then(() => {
      throw new Error(`nginx ended: ${readFileSync(join(scratch, 'error.log'), 'utf8')}`)
    }),
  ])
  return { name: 'nginx', url: `http://127.0.0.1:${port}/v1`, pid: child.pid ?? 0, stop: () => child.kill() }
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const up = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
    if (up) return
  }
}
