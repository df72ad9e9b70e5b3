export { CauseFinder, type ToolCause } from './cause.ts'
export { mcpHttp, type McpHttpOptions } from './http.ts'
export { toolPrograms, toolProgramsDirectory } from './tool-programs.ts'
export { ToolServer, type ToolServerParts } from './tool-server.ts'
