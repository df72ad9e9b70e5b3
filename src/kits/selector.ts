/** `paddock-rl/selector`: what chooses the rollouts of an export is written with. */
export { type Id, PaddockError, type Task, type Verdict } from '../core/index.ts'
export {
  defineSelector,
  type GroupRecord,
  type RolloutView,
  type Selector,
  type SelectorGroup,
} from '../trajectory/index.ts'
