import { PaddockError } from '../../../core/index.ts'
import type { ContextFile } from '../../../sandbox/index.ts'
import type { SqlEngine } from './contract.ts'
import { programOf, programsOf } from './program.ts'

const database = '/opt/paddock/database.duckdb'
const script = '/opt/paddock/build'
/** The engine's own library, as npm ships it for its Node bindings. */
const library = { version: '1.5.6-r.1', file: 'libduckdb.so' }

/** DuckDB: a file in the image, opened by a child per statement through `libduckdb.so`. */
export const duckdbEngine: SqlEngine = {
  name: 'duckdb',
  title: 'DuckDB',
  ...programsOf('duckdb'),
  database,
  neighbour: (kind, number) => `/tmp/${kind}-${number}.duckdb`,
  countsSteps: false,
  takesFiles: false,
  image: ({ name, data }) => {
    if (data.database.kind !== 'script') throw new PaddockError('TASK_INVALID', `${name}: DuckDB needs a script`)
    // Boxes run on this machine, hence its architecture.
    const npm = { ...library, package: `@duckdb/node-bindings-linux-${process.arch}` }
    const context: readonly ContextFile[] = [
      { path: 'libduckdb.so', npm },
      { path: 'generator.py', data: data.database.script },
      { path: 'build.py', data: programOf('duckdb', buildAction) },
    ]
    const dockerfile = [
      'FROM paddock-base',
      'COPY libduckdb.so /opt/paddock/duckdb/libduckdb.so',
      `COPY generator.py build.py ${script}/`,
      `RUN python3 -I -S ${script}/build.py && rm -r ${script} && chmod 444 ${database}`,
      '',
    ].join('\n')
    return { kind: 'dockerfile', name: `sql-${data.database.name}`, dockerfile, context }
  },
  start: async () => undefined,
}

const buildAction = `request = {"script": open("${script}/generator.py", encoding="utf-8").read(), "seed": 0}
generate(request, "/tmp/database.sql")
load_script("/tmp/database.sql", "${database}")
os.unlink("/tmp/database.sql")`
