import { expect, it } from 'vitest'
import { sessionSchema } from '../../config/index.ts'
import { wholePolicy } from './policy.ts'

it('takes what a session leaves out from the configuration, whose schema alone has the defaults', () => {
  const { strategy, history, budget, onDisconnect } = sessionSchema.parse({})
  expect(wholePolicy()).toMatchObject({ strategy, history, budget, onDisconnect })
  expect(wholePolicy({ history: 'template', strategy: 'record' })).toMatchObject({ history: 'template', budget })
})
