// The first import of each door: modules run in the order of their imports, so an older Node ends here with one line. What Node 20 lacks
// of a built-in module (zstd of `zlib`, `registerHooks`) is read of its default export elsewhere: it would refuse a name that is not there
// before anything runs.
const { node } = process.versions
const [major = 0, minor = 0] = node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  const error = new Error(`paddock-rl: Node ${node} is too old; 22.19 is the least. Fix: install Node 24.`)
  // Its places are all in the package: they say nothing to the reader.
  error.stack = `Error: ${error.message}`
  throw error
}
