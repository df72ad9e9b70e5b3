import { expect, test } from 'vitest'
import { stepsByStatus } from './index.ts'

test('a call is worth the share of its tools that ended well; what failed on our side says nothing', () => {
  const steps = stepsByStatus([
    { callId: 'a', tool: 'execute_sql', status: 'ok' },
    { callId: 'b', tool: 'execute_sql', status: 'error' },
    { callId: 'a', tool: 'execute_sql', status: 'timeout' },
    { callId: 'c', tool: 'execute_sql', status: 'infra' },
    { callId: null, tool: 'execute_sql', status: 'ok' },
    { callId: 'd', tool: 'submit_sql', status: 'ok' },
    { callId: 'd', tool: 'submit_sql', status: 'infra' },
  ])
  expect(steps).toEqual([
    { callId: 'a', value: 0.5 },
    { callId: 'b', value: 0 },
    { callId: 'd', value: 1 },
  ])
})
