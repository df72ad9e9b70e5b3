import { dirname, join } from 'node:path'
import type { ContextFile } from '../../../sandbox/index.ts'
import type { SqlEngine } from './contract.ts'
import { programsOf } from './program.ts'

/** Root's, and read-only to everybody who runs in the box. */
const database = '/opt/paddock/database.sqlite'

/** SQLite: a file in the image, opened by a child per statement. */
export const sqliteEngine: SqlEngine = {
  name: 'sqlite',
  title: 'SQLite',
  ...programsOf('sqlite'),
  database,
  neighbour: (kind, number) => `/tmp/${kind}-${number}.sqlite`,
  countsSteps: true,
  takesFiles: true,
  image: ({ data, source }) => {
    const name = `sql-${data.database.name}`
    const close = `chmod 444 ${database}`
    if (data.database.kind === 'script') {
      const context: readonly ContextFile[] = [{ path: 'build.py', data: data.database.script }]
      const dockerfile = [
        'FROM paddock-base',
        'COPY build.py /opt/paddock/build.py',
        `RUN python3 -I /opt/paddock/build.py ${database} 0 && rm /opt/paddock/build.py && ${close}`,
        '',
      ].join('\n')
      return { kind: 'dockerfile', name, dockerfile, context }
    }
    const file = join(dirname(source), data.database.file)
    // The file alone: some data sets keep all their databases in one folder.
    const context: readonly ContextFile[] = [{ path: 'database.sqlite', file, sha256: data.database.sha256 }]
    const dockerfile = `FROM paddock-base\nCOPY database.sqlite ${database}\nRUN ${close}\n`
    return { kind: 'dockerfile', name, dockerfile, context }
  },
  start: async () => undefined,
}
