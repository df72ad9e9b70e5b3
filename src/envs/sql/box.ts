import { dirname, join } from 'node:path'
import type { ContextFile, ImageRecipe } from '../../sandbox/index.ts'
import type { BoxNeeds } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SqlData } from './data.ts'

/** The database in every box of a task; root's, and read-only to everybody who runs there. */
export const databasePath = '/opt/paddock/database.sqlite'
/** Where `submit_sql` keeps what was handed in. */
export const submissionPath = '/workspace/submission.sql'

/**
 * What a task's boxes are, the agent's and the verifier's alike: an image with the database and nothing else of the
 * task. Each box has a file system of its own, so each rollout has its own copy. Gold never enters an image.
 */
export function sqlNeeds(task: TaskOf<SqlData>): BoxNeeds {
  return {
    image: imageOf(task),
    profile: 'user',
    workdir: '/workspace',
    user: null,
    env: {},
    cpus: 1,
    memoryMb: 2048,
    fileMb: 1024,
    network: 'none',
    agentTimeoutMs: null,
    verifyTimeoutMs: task.data.limits.verifyMs * 4,
  }
}

function imageOf({ data, source }: TaskOf<SqlData>): ImageRecipe {
  const { database } = data
  const name = `sql-${database.name}`
  const close = `chmod 444 ${databasePath}`
  if (database.kind === 'script') {
    const context: readonly ContextFile[] = [{ path: 'build.py', data: database.script }]
    const dockerfile = [
      'FROM paddock-base',
      'COPY build.py /opt/paddock/build.py',
      `RUN python3 -I /opt/paddock/build.py ${databasePath} 0 && rm /opt/paddock/build.py && ${close}`,
      '',
    ].join('\n')
    return { kind: 'dockerfile', name, dockerfile, context }
  }
  const file = join(dirname(source), database.file)
  const dockerfile = `FROM paddock-base\nCOPY ${JSON.stringify([basenameOf(file), databasePath])}\nRUN ${close}\n`
  return { kind: 'dockerfile', name, dockerfile, context: dirname(file) }
}

function basenameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
