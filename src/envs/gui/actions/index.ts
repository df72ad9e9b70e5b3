export {
  type Action,
  actionNames,
  actionSchema,
  isFraction,
  outsideOf,
  type ParsedAction,
  parseAction,
  type Screen,
  type SingleAction,
  singleActionSchema,
} from './action.ts'
export { type Key, keyOfCharacter, keyOfName, keysOfCombination } from './keys.ts'
