import { engineContract, openaiPlain, serveFixture } from 'paddock-rl/testing'
import { gatewayEngine } from './engine.ts'

engineContract('gateway', {
  start: async () => {
    const server = await serveFixture(openaiPlain)
    return {
      adapter: gatewayEngine({ url: server.url }),
      model: openaiPlain.model,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
  givesIds: false,
  splices: false,
  alive: false,
})
