export { askUserName } from './ask-tool.ts'
export { type AttemptUser, openUser, talkOf } from './open.ts'
export { againOf, requireUser, wayOf } from './way.ts'
