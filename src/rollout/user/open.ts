import { PaddockError } from '../../core/index.ts'
import type { Environment, Said, TaskUser, Tool } from '../../envs/index.ts'
import type { AttemptContext } from '../attempt-context.ts'
import type { Closing } from '../closing.ts'
import { askUserTool } from './ask-tool.ts'
import type { Player } from './contract.ts'
import { recordedUser, UserConversation } from './conversation.ts'
import { playedUser } from './played.ts'
import { wayOf } from './way.ts'

/** The user of an attempt, and how its agent speaks to it. */
export interface AttemptUser {
  readonly conversation: UserConversation
  /** Null: what a turn ends with is said. */
  readonly tool: Tool | null
}

/** The user of the task; null where it has none. Its session is closed by `closing`. Throws `USER_*`, `ENGINE_*`, `STORE_*`. */
export async function openUser(
  context: AttemptContext,
  environment: Environment,
  closing: Closing,
): Promise<AttemptUser | null> {
  const { run, member, log } = context
  const user = environment.user(member.task)
  if (user === null) return null
  const way = wayOf(user, run.harness)
  const player = user.by === 'record' ? recordedUser(user.replies) : await played(context, user, closing)
  const conversation = new UserConversation({ user, player, emit: log.emit })
  return { conversation, tool: way === 'tool' ? askUserTool(conversation) : null }
}

/** All that was said. An agent that speaks by a tool may end with words of its own, which its user reads as well. */
export async function talkOf(
  { conversation: { talk }, tool }: AttemptUser,
  lastSaid: () => Promise<string | null>,
): Promise<readonly Said[]> {
  const last = tool === null ? null : await lastSaid()
  return last === null ? talk : [...talk, { by: 'agent', text: last }]
}

async function played(
  { run, member, log }: AttemptContext,
  user: Extract<TaskUser, { by: 'model' }>,
  closing: Closing,
): Promise<Player> {
  if (run.userEngine === null) {
    throw new PaddockError('USER_ENGINE_NONE', `Nothing simulates the user of task ${member.task.name}`)
  }
  const { proxy, origin, model } = await run.userEngine()
  const { session, key, baseUrl } = await proxy.openSession({
    rolloutId: log.rolloutId,
    role: 'user_simulator',
    labels: { task: member.task.name },
  })
  closing.add("the user's session", () => proxy.closeSession(session.id))
  const opening = run.environment?.userPrompt(member.task) ?? member.task.instruction
  const player = await playedUser(user, { baseUrl: baseUrl(origin), apiKey: key, model, opening })
  closing.add('the user', async () => player[Symbol.asyncDispose]())
  return player
}
