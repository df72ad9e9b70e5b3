export { type NodeParts, nodeRoutes } from './routes.ts'
export {
  beatAnswer,
  claimAnswer,
  filesAnswer,
  giveBackAnswer,
  handInAnswer,
  nodeLabel,
  nodeLabels,
  type NodeEngines,
  nodeName,
  nodeProtocol,
  openAnswer,
  weightsAnswer,
} from './wire.ts'
