import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { egressGate } from '../sandbox/index.ts'
import { agentPath, sandboxGateway } from './sandbox-gateway.ts'

it('gives each of several agents its own model routes and tools, below a path of its own', () => {
  const asked: string[] = []
  const answers = (who: string) => ({ request: ({ url }: IncomingMessage) => void asked.push(`${who} ${url ?? ''}`) })
  const routes = (who: string) => ({ session: answers(who), mcp: answers(`${who}'s tools`) })
  const gateway = sandboxGateway({
    ...routes('opener'),
    agents: new Map([
      ['opener', routes('opener')],
      ['guide', routes('guide')],
    ]),
    egress: egressGate({ policy: 'none', onAttempt: () => undefined }),
  })
  const ask = (url: string) =>
    gateway.request({ url, method: 'POST', headers: {} } as IncomingMessage, {} as ServerResponse)
  ask('/v1/chat/completions')
  ask(`${agentPath('guide')}/v1/chat/completions?x=1`)
  ask(`${agentPath('guide')}/mcp`)
  ask('/mcp')
  // Nobody's path: the session refuses it.
  ask(`${agentPath('nobody')}/v1/models`)
  expect(asked).toEqual([
    'opener /v1/chat/completions',
    'guide /v1/chat/completions?x=1',
    "guide's tools /mcp",
    "opener's tools /mcp",
    'opener /agents/nobody/v1/models',
  ])
})
