import { editedConversationsHold } from './edited-conversations.ts'

// 200 of them in `npm run torture`.
editedConversationsHold(Number(process.env['RUNS'] ?? 4))
