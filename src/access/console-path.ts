/** Where an engine's own console is served, WebSockets included. */
export const consolePath = '/admin/engine'
