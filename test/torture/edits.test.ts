/** 200 conversations over the four dialects with one edited, trimmed or dropped earlier message each. */
import { editedConversationsHold } from '../properties/edited-conversations.ts'

editedConversationsHold(25)
