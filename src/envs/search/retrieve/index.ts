export { type RetrieveDefaults, retrieveHandler, type Retriever, serveRetrieve } from './server.ts'
