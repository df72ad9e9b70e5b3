export { ByteGate } from './byte-gate.ts'
export { type NodeParts, nodeRoutes } from './routes.ts'
export { nodeVerificationRoutes } from './verifications.ts'
export {
  beatAnswer,
  claimAnswer,
  claimVerificationsAnswer,
  digestHeader,
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
