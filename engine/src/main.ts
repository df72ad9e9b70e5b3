import { Engine } from './engine.ts'
import { listen } from './http/server.ts'
import { readOptions, usage } from './options.ts'
import { routesFor } from './routes.ts'

/**
 * The process: reads flags, listens, prints one line of JSON when ready, ends on SIGTERM or SIGINT. Exit code 2 for
 * flags it cannot use, 1 when it cannot listen.
 */
async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    console.log(usage)
    return
  }
  const engine = new Engine(options)
  const running = await listen(engine, routesFor(options))
  const stop = (): void => {
    void running.close().then(() => process.exit(0))
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  // Last, because whoever reads it may send a signal at once.
  console.log(JSON.stringify({ ready: true, url: running.url, control: running.control, model: engine.profile.model }))
}

try {
  await main()
} catch (error) {
  console.error(`scripted engine: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE' ? 1 : 2
}
