export { CauseFinder, type ToolCause } from './cause.ts'
export { mcpTools } from './mcp-tools.ts'
export { mcpHttp, type McpHttpOptions } from './http.ts'
export { ToolDesk, type ToolDeskParts } from './tool-desk.ts'
