import type { BoxInspector, BoxSight } from '../sandbox/index.ts'

const shell = 'if [ -x /bin/bash ]; then exec /bin/bash -l; else exec /bin/sh; fi'

/** Joins this process's terminal with a shell in a box until the shell ends. */
export async function attachTerminal(inspector: BoxInspector, box: BoxSight): Promise<void> {
  const { stdin, stdout } = process
  stdin.setRawMode(true)
  let onResize: (() => void) | null = null
  try {
    await inspector.exec(box, ['/bin/sh', '-c', shell], {
      onStdout: (bytes) => void stdout.write(bytes),
      onStderr: (bytes) => void stdout.write(bytes),
      terminal: {
        columns: stdout.columns,
        rows: stdout.rows,
        keys: stdin,
        onResizer: (resize) => {
          onResize = () => resize(stdout.columns, stdout.rows)
          stdout.on('resize', onResize)
        },
      },
    })
  } finally {
    if (onResize !== null) stdout.off('resize', onResize)
    stdin.setRawMode(false)
    stdin.destroy()
  }
}
