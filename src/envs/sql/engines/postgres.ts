import { PaddockError } from '../../../core/index.ts'
import type { Box, ContextFile } from '../../../sandbox/index.ts'
import type { SqlEngine } from './contract.ts'
import { programOf, programsOf } from './program.ts'

const root = '/opt/paddock/postgres'
const script = '/opt/paddock/build'
const control = `/usr/local/lib/postgresql/pg_ctl -D ${root}/data -s -w -l /dev/null`
const startTimeoutMs = 60_000
/** Address space of one process of the server, in KiB: a statement that wants more fails by itself. */
const addressSpaceKb = 1_500_000

/**
 * Nothing is kept when the box goes, so nothing waits for a disk. No parallel work, no just-in-time compiler, no
 * vacuum of its own: the same statement gives the same rows in the same order.
 */
const settings = `listen_addresses = ''
unix_socket_directories = '${root}/run'
max_connections = 32
shared_buffers = 32MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
autovacuum = off
jit = off
max_parallel_workers_per_gather = 0
synchronize_seqscans = off
temp_file_limit = 512MB
log_min_messages = panic
`

/** PostgreSQL of Debian: a server in every box, made in the image and started by the box's own user. */
export const postgresEngine: SqlEngine = {
  name: 'postgres',
  title: 'PostgreSQL',
  ...programsOf('postgres'),
  database: 'task',
  neighbour: (kind, number) => `${kind}_${number}`,
  countsSteps: false,
  takesFiles: false,
  image: ({ name, data }) => {
    if (data.database.kind !== 'script') throw new PaddockError('TASK_INVALID', `${name}: PostgreSQL needs a script`)
    const context: readonly ContextFile[] = [
      { path: 'settings.conf', data: settings },
      { path: 'generator.py', data: data.database.script },
      { path: 'build.py', data: programOf('postgres', buildAction) },
    ]
    return { kind: 'dockerfile', name: `sql-${data.database.name}`, dockerfile, context }
  },
  start: async (box, signal) => {
    await run(box, signal, `${control} status >/dev/null || { ulimit -v ${addressSpaceKb}; exec ${control} start; }`)
  },
}

// The steps that all databases share stand first, so that they are one layer.
const dockerfile = `FROM paddock-base
RUN apt-get update \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql \\
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/* /etc/postgresql \\
 && ln -s /usr/lib/postgresql/*/bin /usr/local/lib/postgresql \\
 && install -d -o agent -g agent -m 0700 ${root} ${root}/run
COPY settings.conf /etc/paddock-postgres.conf
USER agent
RUN /usr/local/lib/postgresql/initdb -D ${root}/data -U paddock -A trust -E UTF8 --locale=C.UTF-8 --no-sync --wal-segsize=1 >/dev/null \\
 && echo 'local all all trust' >${root}/data/pg_hba.conf \\
 && cat /etc/paddock-postgres.conf >>${root}/data/postgresql.conf
COPY generator.py build.py ${script}/
RUN ${control} start && python3 -I -S ${script}/build.py && ${control} -m fast stop
USER root
RUN rm -r ${script}
`

const buildAction = `make_roles()
request = {"script": open("${script}/generator.py", encoding="utf-8").read(), "seed": 0, "out": "task"}
op_build(request)`

async function run(box: Box, signal: AbortSignal, command: string): Promise<void> {
  const result = await box.exec(
    {
      command,
      cwd: '/',
      timeoutMs: startTimeoutMs,
      background: 'keep',
      eventRole: 'setup',
      eventCommand: 'postgres start',
    },
    { signal },
  )
  if (result.kind === 'box_dead') throw new PaddockError('BOX_DEAD', `The box died: ${result.why.detail}`)
  if (result.kind === 'exited' && result.code === 0) return
  const said = new TextDecoder().decode(result.stderr).trim().slice(-400)
  throw new PaddockError('VERIFIER_FAILED', `PostgreSQL did not start in the box (${result.kind}): ${said}`)
}
