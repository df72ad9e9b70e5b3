export { readForeignArchive } from './foreign-archive.ts'
export { dockerInspector } from './inspector.ts'
export { sandboxSource } from './recipe.ts'
export { type DockerProviderOptions, dockerProvider } from './provider.ts'
