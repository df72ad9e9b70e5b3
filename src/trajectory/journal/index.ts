export { generationsOf, isBefore, type Place, removeBefore, writtenTo } from './files.ts'
export { type FollowedEntry, Follower } from './follow.ts'
export { type Entry, frameOf, FrameQueue, readFrame, type ReadEntry } from './frame.ts'
export { Journal } from './journal.ts'
